"""The wiring: names the adapters, opens them for one configuration, and closes them in reverse."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memagent.config.agents import load_agents
from memagent.config.environment import load_environment
from memagent.config.settings import load_settings
from memagent.errors import ConfigUnusable
from memagent.llm.embedders import LocalEmbedder, open_embedder, target_of
from memagent.llm.gateway import Gateway
from memagent.service import Memagent
from memagent.service.embedding import embed_unsearched
from memagent.service.ports import Ports
from memagent.store.embedded import EmbeddedRedis
from memagent.store.redis import RedisStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from memagent.config.agents import Agents
    from memagent.config.endpoints import ModelTarget
    from memagent.config.environment import Environment
    from memagent.config.settings import Settings
    from memagent.llm import ChatModel, Embedder
    from memagent.service.erasure import Eraser
    from memagent.service.passages import Passages
    from memagent.sessions.vectors import VectorStore


def utc_now() -> datetime:
    return datetime.now(UTC)


@asynccontextmanager
async def open(  # noqa: A001  read as `memagent.open`
    config: Path | str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    clock: Callable[[], datetime] = utc_now,
    models: Callable[[ModelTarget], ChatModel] | None = None,
    warm: bool = False,
    watch: bool = False,
) -> AsyncIterator[Memagent]:
    """Open memory for one librechat.yaml, for as long as the block runs.

    `config` is the file, or None for MEMAGENT_CONFIG or ./librechat.yaml. `environ` replaces the process's environment,
    `clock` its clock, `models` litellm. `warm` loads litellm at once instead of at the first turn, `watch` follows the notes
    while the block runs; both are for services. Raises `ConfigUnusable` with every finding, `StoreUnavailable`, `EngineMissing`,
    `IndexDrift`, `EmbedderFault`.
    """
    environ = dict(os.environ if environ is None else environ)
    options = load_environment(environ)
    settings = read_settings(Path(config) if config else options.config, options)
    async with AsyncExitStack() as opened:
        gateway = Gateway()
        opened.push_async_callback(gateway.close)
        embedder = await open_embedder(
            options.embedder,
            embed=gateway.embed,
            dimensions=options.embedder_dimensions,
            floor=options.match_floor,
            target=target_of(options.embedder, environ),
        )
        store = await open_store(options, embedder, opened)
        ports = Ports(
            settings=settings,
            options=options,
            store=store,
            embedder=embedder,
            models=models or gateway.model,
            clock=clock,
            environ=environ,
            passages=open_passages(options, store, embedder, opened, clock=clock, watch=watch),
            erasers=(eraser_of_turns(options, store),),
        )
        # Loading takes up to seconds, and the first turn should not wait for it.
        loads: list[Coroutine[Any, Any, Any]] = [embed_unsearched(ports)]
        if ports.passages is not None:
            loads.append(ports.passages.catch_up())
        if isinstance(embedder, LocalEmbedder):
            loads.append(embedder.warm())
        if warm:
            loads.append(gateway.warm())
        for load in loads:
            opened.push_async_callback(stop, asyncio.create_task(load))
        yield Memagent(ports)


def read_settings(config: Path, options: Environment) -> Settings:
    """The settings of a librechat.yaml; raises `ConfigUnusable` when it cannot be read or a run needs it mended."""
    agents: Agents | None = None
    if options.agents_file is not None:
        agents = load_agents(read(options.agents_file), file=str(options.agents_file))
    return load_settings(read(config), file=str(config), agents=agents)


def read(path: Path) -> bytes:
    """A file's bytes; raises `ConfigUnusable` that says why they cannot be had."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigUnusable(
            f"{path} cannot be read: {error.strerror}. Name the file with --config or MEMAGENT_CONFIG"
        ) from None


async def open_store(options: Environment, embedder: Embedder | None, opened: AsyncExitStack) -> RedisStore:
    """The Redis that is configured, or one of our own in the data folder; `opened` closes both."""
    url = options.redis_url
    if url is None:
        server = await opened.enter_async_context(
            await EmbeddedRedis.open(options.data_dir, appendfsync=options.fsync)
        )
        url = server.url
    store = await RedisStore.open(
        url,
        prefix=options.key_prefix,
        embedder_id=embedder.id if embedder else "",
        dimensions=embedder.dimensions if embedder else 0,
        receipt_days=options.receipt_days,
        history_changes=options.history_length,
    )
    opened.push_async_callback(store.close)
    return store


def open_passages(
    options: Environment,
    store: RedisStore,
    embedder: Embedder | None,
    opened: AsyncExitStack,
    *,
    clock: Callable[[], datetime],
    watch: bool,
) -> Passages | None:
    """Turns and notes beside keyed memories, those that are configured; `opened` closes them.

    Nothing is asked yet. Raises `ConfigUnusable` for a notes folder that is not there.
    """
    if not options.transcripts and options.notes_dir is None:
        return None
    if options.notes_dir is not None and not options.notes_dir.is_dir():
        raise ConfigUnusable(f"`MEMAGENT_NOTES_DIR` is no folder: make {options.notes_dir}, or name another")
    from memagent.service.passages import Passages  # noqa: PLC0415  only where passages are kept
    from memagent.service.transcripts import Transcripts  # noqa: PLC0415
    from memagent.sessions.files import Workspace  # noqa: PLC0415
    from memagent.sessions.keys import MAIN  # noqa: PLC0415
    from memagent.sessions.notes import NoteIndex  # noqa: PLC0415
    from memagent.sessions.turns import TurnIndex  # noqa: PLC0415
    from memagent.store.numbers import TurnNumbers  # noqa: PLC0415

    vectors = passage_store(options, store)
    opened.push_async_callback(vectors.close)
    transcripts = notes = None
    if options.transcripts:
        numbers = TurnNumbers(store.client, prefix=store.prefix)
        transcripts = Transcripts(TurnIndex(vectors, embedder), numbers, clock=clock)
    if options.notes_dir is not None:
        notes = NoteIndex(Workspace(options.notes_dir), vectors, embedder, owner=MAIN)
        opened.push_async_callback(notes.close)
    return Passages(embedder, clock, options.auto_recall, transcripts=transcripts, notes=notes, watched=watch)


def passage_store(options: Environment, store: RedisStore) -> VectorStore:
    """Where turns and notes are searched: the same Redis, unless another place is named."""
    from memagent.sessions.vectors.address import open_vectors  # noqa: PLC0415  only where passages are kept

    return open_vectors(options.vectors or store.url, prefix=options.key_prefix)


def eraser_of_turns(options: Environment, store: RedisStore) -> Eraser:
    """Erases a user's turns, also when they were kept before and are no more."""

    async def erase(user: str) -> Mapping[str, int]:
        from memagent.service.transcripts import erase_turns  # noqa: PLC0415  only where somebody is erased
        from memagent.store.numbers import TurnNumbers  # noqa: PLC0415

        numbers = TurnNumbers(store.client, prefix=store.prefix)
        return await erase_turns(user, numbers=numbers, vectors=lambda: passage_store(options, store))

    return erase


async def stop(task: asyncio.Task[Any]) -> None:
    """End a background task; what it had not done yet is done at the next start."""
    task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task
