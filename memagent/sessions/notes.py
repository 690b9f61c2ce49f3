"""The index of one workspace's memory files: kept like the files, rebuilt beside the old one, watched (O66 to O70)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memagent.errors import BadRequest, MemagentError, NotFound
from memagent.sessions.chunks import Chunking, cut, digest
from memagent.sessions.embedding import Embedded, embed_passages
from memagent.sessions.files import decoded, read_bytes
from memagent.sessions.lexical import words
from memagent.sessions.vectors import Generation, Kind, Passage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from memagent.llm import Embedder
    from memagent.sessions.files import NoteFile, Workspace
    from memagent.sessions.vectors import VectorStore

RECIPE = "notes-1"
"""Part of every generation: another way of making rows is another generation."""
DEBOUNCE_MS = 1_500
"""How long the files must be quiet before they are indexed (O66 ff.)."""
STALE = "indexing"
"""The index is being brought up to date; the old one answers."""
RETRY_MS = 30_000
"""When a watcher tries again after a fault."""
PATIENCE_S = 1.0
"""How long a search waits for the index to catch up before it answers from the old one (O70)."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Synced:
    """What one synchronisation did. `embedded` counts texts sent to the embedder, `reused` those with a known vector.

    `unreadable` names files that exist and could not be read: what was indexed of them stays.
    """

    files: int = 0
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    embedded: int = 0
    reused: int = 0
    rebuilt: bool = False
    unreadable: tuple[str, ...] = ()


@dataclass(slots=True)
class _Work:
    generation: Generation
    seed: Generation | None
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    embedded: int = 0
    reused: int = 0


class NoteIndex:
    """Keeps passages of a workspace like its files. `owner` is the agent whose workspace it is (O85).

    Without an embedder the index holds words only (O74). One instance per workspace and process; several processes may
    share the store: rows have the same ids whoever writes them.
    """

    def __init__(
        self,
        workspace: Workspace,
        vectors: VectorStore,
        embedder: Embedder | None,
        *,
        owner: str,
        chunking: Chunking | None = None,
    ) -> None:
        self.workspace = workspace
        self.vectors = vectors
        self.embedder = embedder
        self.owner = owner
        self.chunking = chunking or Chunking()
        self._lock = asyncio.Lock()
        self._running: asyncio.Task[Synced] | None = None

    async def live(self) -> Generation | None:
        """The generation that answers now."""
        return await self.vectors.live(self.owner, Kind.NOTES)

    async def sync(self, *, force: bool = False) -> Synced:
        """Bring the index up to the files.

        An unchanged file costs a read, a changed one the embedding of its new texts. A new embedder, another chunking or
        `force` builds a whole generation beside the live one and swaps it in at the end (O69): whatever fails or dies on
        the way leaves the old one answering, and the next run goes on where it stopped. Raises `EmbedderFault`,
        `StoreFault`, and `NotFound` for a workspace that is gone, which is no reason to forget it.
        """
        async with self._lock:
            live = await self.live()
            wanted = self._wanted(serial=live.serial if live else 1)
            if live and live == wanted and not force:
                return await self._update(_Work(live, None))
            if live:
                wanted = self._wanted(serial=live.serial + 1)
            await self.vectors.begin(wanted)
            done = await self._update(_Work(wanted, live), rebuilt=live is not None)
            await self.vectors.make_live(wanted)
            await self.vectors.sweep(self.owner, Kind.NOTES)
            return done

    async def freshen(self, *, patience_s: float = PATIENCE_S) -> str:
        """Start to catch up and wait a little; empty when the index is up to date, else why it is not (O70).

        The work goes on in the background. An outage of store or embedder is logged and named, not raised: the old
        index can still answer.
        """
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self.sync())
            self._running.add_done_callback(_tell)
        await asyncio.wait({self._running}, timeout=patience_s)
        if not self._running.done():
            return STALE
        try:
            self._running.result()
        except MemagentError as error:
            return error.code
        return ""

    async def watch(
        self, *, stop: asyncio.Event, debounce_ms: int = DEBOUNCE_MS, retry_ms: int = RETRY_MS
    ) -> AsyncIterator[Synced]:
        """Synchronise now and after every change of a memory file, until `stop` is set.

        A failing synchronisation is logged, and tried again with the next change or after `retry_ms`.
        """
        from watchfiles import awatch  # noqa: PLC0415  only who watches pays for it

        changes = awatch(
            self.workspace.root,
            *self.workspace.folders_outside(),
            watch_filter=lambda _, path: self.workspace.concerns(path),
            debounce=debounce_ms,
            stop_event=stop,
            yield_on_timeout=True,
            rust_timeout=debounce_ms,
        )
        # The watcher listens from its first answer on, so what changes during the first synchronisation is seen.
        due_ms: int | None = 0
        async for change in changes:
            if not change and (due_ms is None or (due_ms := due_ms - debounce_ms) > 0):
                continue
            done = await self._caught_up()
            due_ms = retry_ms if done is None else None
            if done is not None:
                yield done

    async def _caught_up(self) -> Synced | None:
        try:
            return await self.sync()
        except MemagentError as error:
            _log.warning("notes not indexed: %s", error.code)
            return None

    async def close(self) -> None:
        """Stop what runs in the background; a build goes on where it stopped the next time."""
        if self._running and not self._running.done():
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    # -- one synchronisation -------------------------------------------------------------------------------------------

    def _wanted(self, *, serial: int) -> Generation:
        recipe = f"{RECIPE};{self.chunking.tokens}/{self.chunking.overlap}"
        if self.embedder is None:
            return Generation(self.owner, Kind.NOTES, serial, recipe=recipe)
        return Generation(
            self.owner, Kind.NOTES, serial, self.embedder.id, self.embedder.dimensions, recipe=recipe
        )

    async def _update(self, work: _Work, *, rebuilt: bool = False) -> Synced:
        known = await self.vectors.versions(work.generation)
        files = await asyncio.to_thread(self.workspace.files)
        for file in files:
            await self._index(work, file, known.get(file.path, frozenset()))
        for path in sorted(known.keys() - {file.path for file in files}):
            await self.vectors.replace(work.generation, path, ())
            work.removed.append(path)
        return Synced(
            len(files),
            tuple(work.changed),
            tuple(work.removed),
            work.embedded,
            work.reused,
            rebuilt,
            tuple(work.unreadable),
        )

    async def _index(self, work: _Work, file: NoteFile, versions: frozenset[str]) -> None:
        try:
            data = await asyncio.to_thread(read_bytes, file.real)
        except NotFound:  # gone since it was listed: the next run removes its rows
            return
        except BadRequest:
            work.unreadable.append(file.path)
            return
        text = decoded(data)
        version = digest(text)
        if versions == {version}:
            return
        passages = [
            Passage(
                path=file.path,
                first=chunk.first,
                last=chunk.last,
                piece=chunk.piece,
                text=chunk.text,
                digest=chunk.digest,
                terms=words(chunk.text),
                version=version,
            )
            for chunk in cut(text, self.chunking)
        ]
        if not passages and not versions:
            return
        done = await self._embedded(work, passages)
        await self.vectors.replace(work.generation, file.path, done.passages)
        work.changed.append(file.path)
        work.embedded += done.embedded
        work.reused += done.reused

    async def _embedded(self, work: _Work, passages: list[Passage]) -> Embedded:
        sources = [work.generation, *([work.seed] if work.seed else [])]
        return await embed_passages(self.vectors, self.embedder, passages, sources=sources)


def _tell(task: asyncio.Task[Synced]) -> None:
    """Log a fault of a synchronisation that nobody may be waiting for any more."""
    if not task.cancelled() and isinstance(error := task.exception(), MemagentError):
        _log.warning("notes not indexed: %s", error.code)
