"""Both passage stores keep the same promises."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pytest

from memagent.errors import BadRequest, StoreUnavailable
from memagent.sessions.chunks import digest
from memagent.sessions.vectors import Generation, Kind, Passage

if TYPE_CHECKING:
    from pathlib import Path

    from memagent.sessions.vectors import VectorStore

NASTY = [
    "a,b",
    "a|b",
    "{x}",
    "*",
    "' OR owner != '",
    "@owner:{*}",
    "-x",
    "~",
    "%x%",
    "\\",
    '"',
    "a b",
    "mèo",
    "größe",
    "c++",
    "3,5",
    "字幕",
    "x" * 900,
]


def generation(
    owner: str = "ann", *, serial: int = 1, dimensions: int = 3, kind: Kind = Kind.NOTES, embedder: str = "e"
) -> Generation:
    return Generation(owner, kind, serial, embedder if dimensions else "", dimensions, "recipe")


def passage(
    path: str, first: int = 1, text: str = "text", *, terms: tuple[str, ...] = (), at: float = 1.0
) -> Passage:
    vector = np.array([at, np.sqrt(1 - at * at), 0], np.float32)
    return Passage(path, first, first, text, digest(text), terms=terms, version="v", vector=vector)


async def live(vectors: VectorStore, chosen: Generation) -> Generation:
    await vectors.begin(chosen)
    assert await vectors.make_live(chosen)
    return chosen


async def paths_with(vectors: VectorStore, chosen: Generation, terms: list[str]) -> list[str]:
    """Paths of the rows that hold one of these words."""
    found = await vectors.containing(chosen, terms, 10)
    rows = await vectors.fetch(chosen, list(found))
    assert {row.id: row.terms for row in rows.values()} == dict(found)
    return [row.path for row in rows.values()]


async def paths(vectors: VectorStore, chosen: Generation) -> set[str]:
    return set(await vectors.versions(chosen))


async def test_a_row_comes_back_as_it_was_written(vectors: VectorStore) -> None:
    chosen = await live(vectors, generation())
    row = Passage(
        "memory/tên | größe, 字.md", 3, 9, "Zeile 1\nmèo\t\u2028 'quoted' \"x\"", digest("x"), 2,
        terms=("zeile", "meo", "meo"), version="v1", label="Ngọc, Anh", at=datetime(2026, 1, 2, 3, 4, 5, 678, UTC),
        vector=np.array([0.6, 0.8, 0], np.float32),
    )  # fmt: skip
    await vectors.add(chosen, [row])

    found = (await vectors.fetch(chosen, [row.id, "unknown"]))[row.id]
    assert found.vector is not None
    assert found.vector.tolist() == row.vector.tolist()
    for name in ("path", "first", "last", "text", "digest", "piece", "terms", "version", "label", "at"):
        assert getattr(found, name) == getattr(row, name)


async def test_lone_surrogates_stop_no_write(vectors: VectorStore) -> None:
    chosen = await live(vectors, generation())
    await vectors.replace(chosen, "a\udcff", [passage("a\udcff", text="b\udcff")])

    assert len(await vectors.rows(chosen, "a\udcff")) == 1


async def test_replacing_a_path_leaves_only_its_new_rows(vectors: VectorStore) -> None:
    chosen = await live(vectors, generation())
    await vectors.replace(
        chosen, "a", [passage("a", 1, "old 1"), passage("a", 2, "old 2"), passage("a", 3, "old 3")]
    )
    await vectors.replace(chosen, "b", [passage("b", 1, "other")])
    await vectors.replace(chosen, "a", [passage("a", 2, "new 2"), passage("a", 7, "new 7")])

    assert [row.text for row in await vectors.rows(chosen, "a")] == ["new 2", "new 7"]
    assert [row.text for row in await vectors.rows(chosen, "b")] == ["other"]
    await vectors.replace(chosen, "a", [])
    assert await paths(vectors, chosen) == {"b"}


async def test_adding_the_same_place_twice_is_one_row(vectors: VectorStore) -> None:
    chosen = await live(vectors, generation())
    await vectors.add(chosen, [passage("s", 1, "one"), passage("s", 1, "two")])
    await vectors.add(chosen, [passage("s", 1, "three")])

    assert [row.text for row in await vectors.rows(chosen, "s")] == ["three"]


async def test_o85_nobody_sees_another_owners_rows(vectors: VectorStore) -> None:
    mine, theirs = await live(vectors, generation("ann")), await live(vectors, generation("ben"))
    await vectors.add(mine, [passage("mine", at=0.1, terms=("word",))])
    await vectors.add(theirs, [passage("theirs", at=1.0, terms=("word",))])

    near = await vectors.nearest(mine, np.array([1, 0, 0], np.float32), 10)
    assert [row for row, _ in near] == [passage("mine").id]
    assert await paths_with(vectors, mine, ["word"]) == ["mine"]
    assert (await vectors.frequencies(mine, ["word"])).rows == 1
    assert await vectors.fetch(mine, [passage("theirs").id]) == {}
    assert list(await vectors.rows(mine, "theirs")) == []
    assert await vectors.vectors(mine, [digest("text")]) != {}
    assert await paths(vectors, mine) == {"mine"}


@pytest.mark.parametrize("owner", NASTY)
async def test_o85_no_name_of_an_owner_reaches_further_than_itself(vectors: VectorStore, owner: str) -> None:
    other = await live(vectors, generation("a"))
    await vectors.add(other, [passage("secret", terms=("word",))])
    chosen = await live(vectors, generation(owner))
    await vectors.add(chosen, [passage("own", terms=("word",))])

    assert await paths(vectors, chosen) == {"own"}
    assert await paths_with(vectors, chosen, ["word"]) == ["own"]
    assert await vectors.erase(owner) == 1
    assert await paths(vectors, other) == {"secret"}


@pytest.mark.parametrize("word", [word for word in NASTY if "|" not in word])
async def test_a_word_finds_itself_and_nothing_else(vectors: VectorStore, word: str) -> None:
    chosen = await live(vectors, generation())
    await vectors.add(chosen, [passage("other", terms=("plain",)), passage(word, terms=("plain", word))])

    assert await paths_with(vectors, chosen, [word]) == [word]
    assert (await vectors.frequencies(chosen, [word, "plain"])).by_term == {word: 1, "plain": 2}
    assert [row.path for row in await vectors.rows(chosen, word)] == [word]


async def test_counts_are_of_one_generation(vectors: VectorStore) -> None:
    chosen = await live(vectors, generation())
    await vectors.add(
        chosen, [passage("a", 1, terms=("x", "x", "y")), passage("a", 2, terms=("y",)), passage("a", 3)]
    )

    counts = await vectors.frequencies(chosen, ["x", "y", "z"])
    assert (counts.rows, counts.terms, counts.by_term) == (3, 4, {"x": 1, "y": 2, "z": 0})
    assert (await vectors.frequencies(chosen, [])).rows == 3


async def test_the_nearest_come_first_with_their_cosines(vectors: VectorStore) -> None:
    chosen = await live(vectors, generation())
    await vectors.add(chosen, [passage("a", number, f"t{number}", at=number / 10) for number in range(1, 10)])

    near = await vectors.nearest(chosen, np.array([1, 0, 0], np.float32), 3)
    assert [row for row, _ in near] == [passage("a", number).id for number in (9, 8, 7)]
    assert [cosine for _, cosine in near] == pytest.approx([0.9, 0.8, 0.7], abs=1e-5)
    assert list(await vectors.nearest(chosen, np.array([1, 0, 0], np.float32), 0)) == []


async def test_a_row_without_a_vector_is_found_by_words_only(vectors: VectorStore) -> None:
    chosen = await live(vectors, generation())
    bare = Passage("bare", 1, 1, "text", digest("bare"), terms=("word",))
    await vectors.add(chosen, [bare, passage("a", terms=("word",))])

    assert set(await paths_with(vectors, chosen, ["word"])) == {"bare", "a"}
    assert len(await vectors.nearest(chosen, np.array([1, 0, 0], np.float32), 10)) == 1
    assert (await vectors.fetch(chosen, [bare.id]))[bare.id].vector is None
    assert await vectors.vectors(chosen, [digest("bare")]) == {}


async def test_a_generation_of_words_only_has_no_vectors(vectors: VectorStore) -> None:
    chosen = await live(vectors, generation(dimensions=0))
    bare = Passage("bare", 1, 1, "text", digest("bare"), terms=("word",))
    await vectors.replace(chosen, "bare", [bare])

    assert list(await vectors.nearest(chosen, np.array([1, 0, 0], np.float32), 5)) == []
    assert await paths_with(vectors, chosen, ["word"]) == ["bare"]
    assert await vectors.vectors(chosen, [digest("bare")]) == {}


async def test_a_generation_answers_only_once_it_is_live(vectors: VectorStore) -> None:
    first, second = generation(serial=1), generation(serial=2, dimensions=0)
    assert await vectors.live("ann", Kind.NOTES) is None
    await vectors.begin(first)
    assert await vectors.live("ann", Kind.NOTES) is None
    assert await vectors.make_live(first)
    await vectors.begin(second)
    assert await vectors.live("ann", Kind.NOTES) == first
    assert await vectors.make_live(second)
    assert await vectors.live("ann", Kind.NOTES) == second
    assert await vectors.live("ann", Kind.TURNS) is None


async def test_an_older_generation_never_replaces_a_newer_one(vectors: VectorStore) -> None:
    newer = await live(vectors, generation(serial=3))

    assert not await vectors.make_live(generation(serial=2))
    assert not await vectors.make_live(generation(serial=3, embedder="rival"))
    assert await vectors.live("ann", Kind.NOTES) == newer


async def test_a_generation_begun_again_keeps_its_rows(vectors: VectorStore) -> None:
    chosen = generation()
    await vectors.begin(chosen)
    await vectors.add(chosen, [passage("a")])
    await vectors.begin(chosen)

    assert await paths(vectors, chosen) == {"a"}


async def test_a_sweep_removes_what_came_before_and_what_lost_and_not_what_is_to_come(
    vectors: VectorStore,
) -> None:
    old, now, rival, coming = (
        generation(),
        generation(serial=2),
        generation(serial=2, embedder="rival"),
        generation(serial=3, dimensions=0),
    )
    turns = await live(vectors, generation(kind=Kind.TURNS))
    for each in (old, now, rival):
        await vectors.begin(each)
        await vectors.add(each, [passage("a")])
    await vectors.begin(coming)
    await vectors.add(coming, [Passage("a", 1, 1, "t", "d", terms=("x",))])
    await vectors.add(turns, [passage("a")])
    await vectors.make_live(now)

    assert await vectors.sweep("ann", Kind.NOTES) == 2
    assert [len(await paths(vectors, each)) for each in (old, now, rival, coming, turns)] == [0, 1, 0, 1, 1]
    assert await vectors.sweep("ann", Kind.NOTES) == 0


async def test_nothing_is_swept_before_a_generation_is_live(vectors: VectorStore) -> None:
    await vectors.begin(generation())
    await vectors.add(generation(), [passage("a")])

    assert await vectors.sweep("ann", Kind.NOTES) == 0
    assert await paths(vectors, generation()) == {"a"}


async def test_erasing_an_owner_takes_every_kind_and_generation(vectors: VectorStore) -> None:
    for each in (generation(), generation(serial=2, dimensions=0), generation(kind=Kind.FACTS)):
        await vectors.begin(each)
        await vectors.add(each, [Passage("a", 1, 1, "t", "d")])
    await vectors.make_live(generation())

    assert await vectors.erase("ann") == 3
    assert await vectors.live("ann", Kind.NOTES) is None
    assert await vectors.erase("ann") == 0


async def test_rows_that_nobody_remembers_are_erased_too(vectors: VectorStore) -> None:
    old, new = await live(vectors, generation()), generation(serial=2)
    await live(vectors, new)
    await vectors.sweep("ann", Kind.NOTES)
    await vectors.add(old, [passage("late")])

    assert await vectors.erase("ann") == 1


async def test_lance_keeps_everything_over_a_restart(tmp_path: Path) -> None:
    from memagent.sessions.vectors.lance import LanceVectors

    store = LanceVectors(tmp_path / "store")
    chosen = await live(store, generation())
    await store.add(chosen, [passage("a")])
    await store.close()

    again = LanceVectors(tmp_path / "store")
    assert await again.live("ann", Kind.NOTES) == chosen
    assert await paths(again, chosen) == {"a"}
    await again.close()


async def test_two_processes_worth_of_lance_connections_see_each_other(tmp_path: Path) -> None:
    from memagent.sessions.vectors.lance import LanceVectors

    one, other = LanceVectors(tmp_path), LanceVectors(tmp_path)
    chosen = await live(one, generation())
    await other.add(chosen, [passage("b")])
    await one.add(chosen, [passage("a")])

    assert await paths(one, chosen) == await paths(other, chosen) == {"a", "b"}
    await one.close()
    await other.close()


async def test_lance_erases_the_bytes_too(tmp_path: Path) -> None:
    from memagent.sessions.vectors.lance import LanceVectors

    store = LanceVectors(tmp_path)
    chosen = await live(store, generation())
    await store.add(chosen, [passage("a", text="unmistakable")])
    assert _holds(tmp_path, b"unmistakable")
    await store.erase("ann")

    assert not _holds(tmp_path, b"unmistakable")
    await store.close()


def _holds(folder: Path, words: bytes) -> bool:
    return any(words in path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_a_redis_that_is_away_is_unavailable() -> None:
    from memagent.sessions.vectors.redis import RedisVectors

    store = RedisVectors.open("redis://127.0.0.1:1/0")
    with pytest.raises(StoreUnavailable):
        await store.live("ann", Kind.NOTES)
    with pytest.raises(StoreUnavailable):
        await store.begin(generation())
    await store.close()


def test_what_is_no_redis_url_is_refused() -> None:
    from memagent.sessions.vectors.redis import RedisVectors

    with pytest.raises(BadRequest):
        RedisVectors.open("http://example.invalid")


async def test_a_lance_folder_that_cannot_be_is_unavailable(tmp_path: Path) -> None:
    from memagent.sessions.vectors.lance import LanceVectors

    (tmp_path / "file").write_text("")
    store = LanceVectors(tmp_path / "file" / "deeper")
    with pytest.raises(StoreUnavailable):
        await store.live("ann", Kind.NOTES)
    await store.close()
