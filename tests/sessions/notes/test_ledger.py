"""Turns and facts are written at once and survive another embedder."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from memagent.errors import BadRequest, EmbedderFault, NotFound
from memagent.sessions.facts import Category, Facts
from memagent.sessions.ranking import Features
from memagent.sessions.search import SearchPolicy
from memagent.sessions.turn_search import search_turns
from memagent.sessions.turns import TurnIndex, Utterance, session_path
from tests.sessions.notes.note_cases import NOW, AngledEmbedder, CountingEmbedder

if TYPE_CHECKING:
    from memagent.sessions.vectors import VectorStore

AT = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def said(
    number: int, text: str, *, speaker: str = "Caroline", session: str = "s1", at: datetime = AT
) -> Utterance:
    return Utterance(session, number, speaker, text, at)


async def texts(index: TurnIndex, owner: str = "ann", session: str = "s1") -> list[str]:
    return [row.text for row in await index.rows(owner, session_path(session))]


async def found(
    index: TurnIndex, text: str, owner: str = "ann", *, min_score: float = 0.35, weights: Any = None
) -> list[str]:
    policy = SearchPolicy(min_score=min_score)
    answer = await search_turns(index, owner, text, now=NOW, policy=policy, weights=weights)
    return [hit.citation for hit in answer.hits]


async def test_a_turn_is_found_with_its_session_date_and_speaker(
    vectors: VectorStore, embedder: CountingEmbedder
) -> None:
    index = TurnIndex(vectors, embedder)
    done = await index.say(
        "ann", [said(1, "I adopted a cat called Mochi"), said(2, " "), said(3, "How sweet!", speaker="Mel")]
    )
    assert (done.rows, done.embedded, done.unembedded) == (2, 2, 0)

    hit = (await search_turns(index, "ann", "cat Mochi", now=NOW)).hits[0]
    assert hit.to_json() == {
        "path": "sessions/s1", "startLine": 1, "endLine": 1, "score": round(hit.score, 4), "source": "sessions",
        "snippet": "I adopted a cat called Mochi", "citation": "sessions/s1#L1-L1", "speaker": "Caroline",
        "date": "2023-05-08T13:56:00+00:00",
    }  # fmt: skip


async def test_o85_an_owner_never_finds_what_another_said(
    vectors: VectorStore, embedder: CountingEmbedder
) -> None:
    index = TurnIndex(vectors, embedder)
    await index.say("ann", [said(1, "the cat is called Mochi")])
    await index.say("ben", [said(1, "the cat is called Miso")])

    assert await found(index, "Miso") == []
    assert await texts(index, "ben") == ["the cat is called Miso"]
    assert await index.read("cleo", "sessions/s1") == ""
    await index.forget("ann", "s1")
    assert await texts(index, "ben") == ["the cat is called Miso"]


async def test_a_turn_given_twice_is_one_turn_and_a_changed_one_replaces_it(
    vectors: VectorStore, embedder: CountingEmbedder
) -> None:
    index = TurnIndex(vectors, embedder)
    await index.say("ann", [said(1, "one"), said(2, "two")])
    again = await index.say("ann", [said(1, "one"), said(2, "zwei")])

    assert (again.embedded, again.reused) == (1, 1)
    assert await texts(index) == ["one", "zwei"]


async def test_a_long_turn_is_one_hit_however_many_rows_it_is(
    vectors: VectorStore, embedder: CountingEmbedder
) -> None:
    index = TurnIndex(vectors, embedder)
    await index.say(
        "ann", [said(1, "\n".join(f"the cat sleeps, part {number}, {'z' * 80}" for number in range(60)))]
    )

    assert len(await texts(index)) > 2
    assert await found(index, "cat sleeps") == ["sessions/s1#L1-L1"]


async def test_a_cited_turn_can_be_read(vectors: VectorStore, embedder: CountingEmbedder) -> None:
    index = TurnIndex(vectors, embedder)
    await index.say("ann", [said(1, "one"), said(2, "two", speaker="Mel"), said(10, "ten")])

    assert await index.read("ann", "sessions/s1", first=2, count=1) == "2023-05-08 13:56 Mel: two"
    assert (await index.read("ann", "sessions/s1", first=2)).splitlines()[-1].endswith("Caroline: ten")
    assert await index.read("ann", "sessions/none") == ""
    for path, first, count in (("s1", 1, None), ("sessions/s1", 0, None), ("sessions/s1", 1, -1)):
        with pytest.raises(BadRequest):
            await index.read("ann", path, first=first, count=count)


async def test_a_turn_is_found_by_what_is_said_beside_it(vectors: VectorStore) -> None:
    index = TurnIndex(vectors, AngledEmbedder({"lovely": 0.4, "indeed": 0.4, "Which": 0.9}))
    await index.say("ann", [
        said(1, "Which race did you run for charity?"), said(2, "It was lovely"),
        said(5, "something else", session="s2"), said(6, "It was indeed", session="s2"),
    ])  # fmt: skip

    assert await found(index, "charity race") == ["sessions/s1#L1-L1", "sessions/s1#L2-L2"]


async def test_speaker_and_date_are_worth_what_the_weights_say(vectors: VectorStore) -> None:
    index = TurnIndex(vectors, AngledEmbedder({"lovely": 0.6, "indeed": 0.6}))
    late = AT + timedelta(days=60)
    await index.say(
        "ann", [said(1, "It was lovely", speaker="Mel"), said(1, "It was indeed", session="s2", at=late)]
    )

    async def first(text: str) -> str:
        return (await found(index, text, weights=Features(vector=1.0, speaker=0.5, date=0.5)))[0]

    assert await first("What did Caroline say?") == "sessions/s2#L1-L1"
    assert await first("What did Mel say?") == "sessions/s1#L1-L1"
    assert await first("What was it in July 2023?") == "sessions/s2#L1-L1"


async def test_the_best_of_nothing_is_still_nothing(vectors: VectorStore) -> None:
    index = TurnIndex(vectors, AngledEmbedder({"near": 0.1, "far": 0.05}))
    await index.say("ann", [said(1, "near"), said(9, "far")])

    assert await found(index, "question") == []
    assert await found(index, "question", min_score=0.05) == ["sessions/s1#L1-L1"]


async def test_a_turn_with_every_word_passes_the_floor(vectors: VectorStore) -> None:
    index = TurnIndex(vectors, AngledEmbedder({}))
    await index.say("ann", [said(1, "Mochi"), said(3, "nothing to see")])

    assert await found(index, "Mochi", min_score=0.99) == ["sessions/s1#L1-L1"]
    assert await found(index, " ") == []


async def test_turns_said_while_the_embedder_is_down_are_found_by_words_and_mended(
    vectors: VectorStore, embedder: CountingEmbedder
) -> None:
    index = TurnIndex(vectors, embedder)
    await index.say("ann", [said(1, "the dog is called Rex")])
    embedder.down = True
    assert (await index.say("ann", [said(2, "the cat is called Mochi")])).unembedded == 1
    assert (await found(TurnIndex(vectors, None), "Mochi"))[0] == "sessions/s1#L2-L2"
    with pytest.raises(EmbedderFault):
        await index.catch_up("ann")
    embedder.down = False

    done = await index.catch_up("ann")
    assert (done.rows, done.embedded, done.rebuilt) == (1, 1, False)
    assert (await index.catch_up("ann")).rows == 0


async def test_another_embedder_builds_a_new_generation_from_the_old_texts(
    vectors: VectorStore, embedder: CountingEmbedder
) -> None:
    old = TurnIndex(vectors, embedder)
    await old.say("ann", [said(1, "the cat is called Mochi"), said(1, "Rex", session="s2")])
    other = CountingEmbedder("other", dimensions=32)
    new = TurnIndex(vectors, other)

    answer = await search_turns(new, "ann", "Mochi", now=NOW)
    assert (answer.stale, [hit.path for hit in answer.hits]) == ("indexing", ["sessions/s1"])
    done = await new.catch_up("ann")
    assert (done.rebuilt, done.embedded) == (True, 2)
    answer = await search_turns(new, "ann", "Mochi", now=NOW)
    assert (answer.stale, [hit.path for hit in answer.hits]) == ("", ["sessions/s1"])
    live = await new.live("ann")
    assert live
    assert (live.embedder, live.serial) == ("other", 2)
    assert not (await new.catch_up("ann")).rebuilt


async def test_a_rebuild_that_fails_leaves_the_old_turns_answering(
    vectors: VectorStore, embedder: CountingEmbedder
) -> None:
    index = TurnIndex(vectors, embedder)
    await index.say("ann", [said(1, "the cat is called Mochi")])
    with pytest.raises(EmbedderFault):
        await TurnIndex(vectors, CountingEmbedder("other", down=True)).catch_up("ann")

    assert await found(index, "Mochi") == ["sessions/s1#L1-L1"]


class _Meddling(CountingEmbedder):
    """Does something once, in the middle of a rebuild."""

    def __init__(self, meddle: Any) -> None:
        super().__init__("meddling", dimensions=16)
        self.meddle = meddle

    async def passages(self, texts: Any) -> Any:
        meddle, self.meddle = self.meddle, None
        if meddle:
            await meddle()
        return await super().passages(texts)


async def test_what_is_said_while_a_rebuild_runs_is_not_lost(
    vectors: VectorStore, embedder: CountingEmbedder
) -> None:
    old = TurnIndex(vectors, embedder)
    await old.say("ann", [said(1, "one"), said(2, "two"), said(1, "else", session="s9")])

    async def meddle() -> None:
        await old.say("ann", [said(1, "new", session="s0"), said(2, "two, corrected"), said(3, "three")])
        await old.forget("ann", "s9")

    new = TurnIndex(vectors, _Meddling(meddle))
    await new.catch_up("ann")

    assert await texts(new) == ["one", "two, corrected", "three"]
    assert await texts(new, session="s0") == ["new"]
    assert await texts(new, session="s9") == []
    live = await new.live("ann")
    assert live
    rows = await vectors.fetch(live, [row.id for row in await new.rows("ann", "sessions/s1")])
    assert all(row.vector is not None for row in rows.values())


async def test_many_turns_at_once_are_all_there(vectors: VectorStore, embedder: CountingEmbedder) -> None:
    index = TurnIndex(vectors, embedder)
    await asyncio.gather(*(index.say("ann", [said(number, f"turn {number}")]) for number in range(1, 9)))

    assert await texts(index) == [f"turn {number}" for number in range(1, 9)]


@pytest.mark.parametrize(
    "bad",
    [{"session": ""}, {"number": 0}, {"at": datetime(2023, 5, 8)}],  # noqa: DTZ001  the fault under test
)
def test_an_utterance_without_place_or_zone_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="utterance"):
        Utterance(**{"session": "s", "number": 1, "speaker": "A", "text": "t", "at": AT} | bad)


# -- facts -------------------------------------------------------------------------------------------------------------


async def test_o84_store_duplicate_forget_gone(vectors: VectorStore, embedder: CountingEmbedder) -> None:
    facts = Facts(vectors, embedder)
    stored = await facts.store("ann", "Prefers  dark mode", now=NOW, category=Category.PREFERENCE)
    again = await facts.store("ann", "prefers dark mode!", now=NOW)
    assert (stored.duplicate, again.duplicate, again.fact.id) == (False, True, stored.fact.id)

    hits = (await facts.search("ann", "dark mode", now=NOW)).hits
    assert [(hit.snippet, hit.label, hit.source) for hit in hits] == [
        ("Prefers dark mode", "preference", "facts")
    ]
    assert (await facts.forget("ann", stored.fact.id)).text == "Prefers dark mode"
    assert (await facts.search("ann", "dark mode", now=NOW)).hits == ()
    with pytest.raises(NotFound):
        await facts.forget("ann", stored.fact.id)


async def test_o84_nearly_the_same_sentence_is_refused_at_a_cosine_of_095(vectors: VectorStore) -> None:
    facts = Facts(vectors, AngledEmbedder({"first": 1.0, "near": 0.951, "other": 0.949}))
    first = await facts.store("ann", "first words", now=NOW)
    assert (await facts.store("ann", "near enough", now=NOW)).fact == first.fact
    assert not (await facts.store("ann", "other thing", now=NOW)).duplicate


async def test_o84_only_a_uuid_forgets_by_id(vectors: VectorStore, embedder: CountingEmbedder) -> None:
    with pytest.raises(BadRequest):
        await Facts(vectors, embedder).forget("ann", "*")


async def test_o84_a_description_forgets_only_what_it_means_beyond_doubt(vectors: VectorStore) -> None:
    facts = Facts(vectors, AngledEmbedder({"cat": 1.0, "feline": 0.92, "animal": 0.75, "car": 0.2}))
    for text in ("a feline thing", "an animal thing", "a car thing"):
        await facts.store("ann", text, now=NOW)

    doubt = await facts.forget_like("ann", "cat")
    assert (doubt.fact, [fact.text for fact in doubt.candidates]) == (
        None,
        ["a feline thing", "an animal thing"],
    )
    await facts.forget("ann", doubt.candidates[1].id)
    assert (forgotten := (await facts.forget_like("ann", "cat")).fact)
    assert forgotten.text == "a feline thing"
    assert await facts.forget_like("ann", "cat") == type(doubt)()


async def test_o85_facts_of_another_owner_are_neither_found_nor_forgotten_nor_duplicates(
    vectors: VectorStore, embedder: CountingEmbedder
) -> None:
    facts = Facts(vectors, embedder)
    mine = await facts.store("ann", "Prefers dark mode", now=NOW)

    assert (await facts.search("ben", "dark mode", now=NOW)).hits == ()
    with pytest.raises(NotFound):
        await facts.forget("ben", mine.fact.id)
    assert not (await facts.store("ben", "Prefers dark mode", now=NOW)).duplicate


async def test_o86_facts_are_embedded_anew_for_another_model(
    vectors: VectorStore, embedder: CountingEmbedder
) -> None:
    await Facts(vectors, embedder).store("ann", "Prefers dark mode", now=NOW)
    other = Facts(vectors, CountingEmbedder("other", dimensions=8))

    assert (await other.catch_up("ann")).rebuilt
    assert (await other.store("ann", "Prefers dark mode", now=NOW)).duplicate


@pytest.mark.parametrize("text", ["", "  ", "x" * 501])
async def test_o84_a_fact_is_a_sentence(vectors: VectorStore, embedder: CountingEmbedder, text: str) -> None:
    with pytest.raises(BadRequest):
        await Facts(vectors, embedder).store("ann", text, now=NOW)


async def test_o84_two_equal_facts_stored_at_once_are_one(
    vectors: VectorStore, embedder: CountingEmbedder
) -> None:
    one, other = Facts(vectors, embedder), Facts(vectors, embedder)
    await asyncio.gather(one.store("ann", "Likes tea", now=NOW), other.store("ann", "Likes tea", now=NOW))

    assert len((await one.search("ann", "tea", now=NOW)).hits) == 1
