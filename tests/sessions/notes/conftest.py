"""Both passage stores behind one fixture, and a workspace to write notes in."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memagent.sessions.files import Workspace
from tests.sessions.notes.note_cases import CountingEmbedder, index_with

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from memagent.sessions.notes import NoteIndex
    from memagent.sessions.vectors import VectorStore


def opened_at(kind: str, where: str, prefix: str) -> VectorStore:
    if kind == "redis":
        from memagent.sessions.vectors.redis import RedisVectors

        return RedisVectors.open(where, prefix=prefix)
    from memagent.sessions.vectors.lance import LanceVectors

    return LanceVectors(Path(where))


@pytest.fixture(params=["redis", "lance"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """Kind, place and key prefix of a store of its own."""
    where = request.getfixturevalue("redis_url") if request.param == "redis" else str(tmp_path / "lance")
    return [request.param, where, f"test-{uuid.uuid4().hex}"]


@pytest.fixture
async def vectors(address: list[str]) -> AsyncIterator[VectorStore]:
    store = opened_at(*address)
    yield store
    await store.close()


@pytest.fixture
async def both(redis_url: str, tmp_path: Path) -> AsyncIterator[tuple[VectorStore, VectorStore]]:
    stores = (
        opened_at("redis", redis_url, f"test-{uuid.uuid4().hex}"),
        opened_at("lance", str(tmp_path / "lance"), ""),
    )
    yield stores
    for store in stores:
        await store.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path / "workspace"
    (root / "memory").mkdir(parents=True)
    return Workspace(root)


@pytest.fixture
def write(workspace: Workspace) -> Callable[..., Path]:
    def written(path: str, text: str) -> Path:
        real = workspace.root / path
        real.parent.mkdir(parents=True, exist_ok=True)
        real.write_bytes(text.encode("utf-8", "surrogateescape"))
        return real

    return written


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def index(workspace: Workspace, vectors: VectorStore, embedder: CountingEmbedder) -> NoteIndex:
    return index_with(workspace, vectors, embedder)
