"""Sessions of one agent: what a backend calls before and after each turn.

Everything about one key happens one after the other, across processes; different keys do not wait for each other.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from memagent.errors import Conflict, ModelFault, NoSuchSession
from memagent.memory import Message
from memagent.sessions.archive import Reason
from memagent.sessions.commands import RESET_TRIGGERS, Ask, Command, command, greeting
from memagent.sessions.compaction import Compaction, CompactionSettings, Status, Trigger
from memagent.sessions.compactor import Compactor
from memagent.sessions.context import Context, context
from memagent.sessions.estimator import O200kEstimator
from memagent.sessions.flush import Flusher, flushed_this_cycle
from memagent.sessions.keys import fold, kind_of, lock_name
from memagent.sessions.locks import FileLocks
from memagent.sessions.message_json import to_json
from memagent.sessions.pruning import PruningSettings, prune
from memagent.sessions.registry import FileRegistry
from memagent.sessions.reset import ResetSettings, stale, zone
from memagent.sessions.rotation import SessionFiles
from memagent.sessions.summary import is_overflow
from memagent.sessions.transcript import MESSAGE, Draft
from memagent.sessions.usage import after_run, usage_json
from memagent.turn import text_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path
    from typing import Any

    from memagent.llm import ChatModel, ModelReply, Usage
    from memagent.sessions.compactor import Window
    from memagent.sessions.entry import SessionEntry
    from memagent.sessions.estimator import TokenCountEstimator
    from memagent.sessions.flush import Flush
    from memagent.sessions.registry import SessionRegistry

ACCESS_STEP = timedelta(minutes=1)
"""Reading a session marks the access at most this often; cleanup counts in days."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """`model_name` is what the context window is looked up by; `sync` puts every append on the disk before it returns."""

    reset: ResetSettings = field(default_factory=ResetSettings)
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    pruning: PruningSettings = field(default_factory=PruningSettings)
    triggers: tuple[str, ...] = RESET_TRIGGERS
    model_name: str = ""
    sync: bool = True


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a run, and what its call reported. `details` are kept for people and never shown to a model."""

    message: Message
    usage: Usage | None = None
    stop_reason: str = ""
    is_error: bool = False
    details: Mapping[str, Any] | None = None

    def draft(self) -> Draft:
        data: dict[str, Any] = {"message": to_json(self.message)}
        if self.usage is not None:
            data["usage"] = usage_json(self.usage)
        if self.stop_reason:
            data["stopReason"] = self.stop_reason
        if self.is_error:
            data["isError"] = True
        if self.details is not None:
            data["details"] = dict(self.details)
        return Draft(MESSAGE, data)


@dataclass(frozen=True, slots=True)
class Received:
    """What became of a user's message.

    `text` is what goes to the model, after a trigger was taken off; `greeting` stands in its place after a bare `/new`.
    `ended` says why the session before ended: `reset`, `daily`, `idle`. After `/compact` only `compaction` is set.
    """

    session_id: str
    text: str = ""
    is_new: bool = False
    ended: str = ""
    greeting: str = ""
    compaction: Compaction | None = None


class Sessions:
    """The sessions under `folder`, `<data dir>/sessions/<agent>`.

    `flush` saves to memory before context is lost; `window` knows a model's window by its name. Without `registry` the
    store is `sessions.json` in the folder. `clock` gives aware times.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clock: Callable[[], datetime],
        settings: SessionSettings | None = None,
        registry: SessionRegistry | None = None,
        model: ChatModel | None = None,
        window: Window | None = None,
        estimator: TokenCountEstimator | None = None,
        flush: Flush | None = None,
        new_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self.settings = settings or SessionSettings()
        self.folder = folder
        self.registry = registry or FileRegistry(folder, clock=clock, sync=self.settings.sync)
        self._clock = clock
        self._estimator = estimator or O200kEstimator()
        self._locks = FileLocks(folder / ".locks")
        self._zone_name = self.settings.reset.zone
        self._files = SessionFiles(
            folder, registry=self.registry, clock=clock, new_id=new_id, sync=self.settings.sync
        )
        self._flusher = Flusher(flush, registry=self.registry, clock=clock, zone_name=self._zone_name)
        self._compactor = Compactor(
            self._files,
            settings=self.settings.compaction,
            estimator=self._estimator,
            flusher=self._flusher,
            model=model,
            model_name=self.settings.model_name,
            window=window,
        )
        self._notices: dict[str, list[str]] = {}

    # -- what the user does --------------------------------------------------------------------------------------------

    async def receive(
        self,
        key: str,
        said: str | Message,
        *,
        authorised: bool = True,
        mentions: Sequence[str] = (),
        models: Collection[str] = (),
        channel: str = "",
        thread: bool = False,
        group: bool = False,
        idempotency_key: str | None = None,
    ) -> Received:
        """Take in a user's message: run its command, end a session that is over (O11), append the message.

        Only this keeps a session fresh (O21). A stranger's commands are ordinary text (O16). The same `idempotency_key`
        again, in the same session, appends nothing (O32).
        """
        message = Message("user", said) if isinstance(said, str) else said
        text = text_of(message.content)
        asked = command(
            text, authorised=authorised, triggers=self.settings.triggers, mentions=mentions, models=models
        )
        async with self._hold(key):
            entry, is_new = await self._files.open(key)
            if asked and asked.ask is Ask.COMPACT:
                done, entry = await self._compact(key, entry, Trigger.MANUAL, asked.rest)
                await self._touch(key, entry, last_interaction_at=self._clock())
                return Received(entry.session_id, compaction=done)
            kind = str(kind_of(key, thread=thread, group=group))
            ended = str(Ask.RESET) if asked else self._over(entry, kind, channel)
            if ended:
                entry = await self._end(key, entry, ended, asked)
            found = Received(entry.session_id, text, is_new=is_new or bool(ended), ended=ended)
            if asked:
                message = Message("user", asked.rest, id=message.id)
                now = self._clock().astimezone(zone(self._zone_name))
                found = Received(
                    entry.session_id,
                    asked.rest,
                    is_new=True,
                    ended=ended,
                    greeting="" if asked.rest else greeting(now),
                )
            if not asked or asked.rest:
                await self._files.append(entry, [Said(message).draft()], key=idempotency_key)
            places = {"channel": channel, "last_channel": channel} if channel else {}
            await self._touch(key, entry, chat_type=kind, last_interaction_at=self._clock(), **places)
            return found

    async def reset(self, key: str) -> Received:
        """End the key's session and begin a new one, as `/reset` does; raises `NoSuchSession` where there is none."""
        async with self._hold(key):
            entry = await self._end(key, await self._known(key), str(Ask.RESET), Command(Ask.RESET))
            return Received(entry.session_id, is_new=True, ended=str(Ask.RESET))

    async def compact(
        self, key: str, *, trigger: Trigger = Trigger.MANUAL, instructions: str = ""
    ) -> Compaction:
        """Compact the key's session, or say why not; raises `NoSuchSession` where there is none."""
        async with self._hold(key):
            done, _ = await self._compact(key, await self._known(key), trigger, instructions)
            return done

    # -- what the agent does -------------------------------------------------------------------------------------------

    async def record(
        self,
        key: str,
        said: Sequence[Said],
        *,
        session_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        """Append what one run said: answers, calls, results; count what its calls reported.

        With `session_id` the run belongs to that session: when it was reset meanwhile, `Conflict` is raised and nothing
        written; when it was compacted, the run goes to its successor. The same `idempotency_key` adds one line once (O32).
        Never makes a session fresh (O21).
        """
        async with self._hold(key):
            entry, _ = await self._files.open(key)
            compacted = entry.compaction_count > 0 and entry.parent_session_id == session_id
            if session_id and entry.session_id != session_id and not compacted:
                raise Conflict(
                    f"the session {session_id} of {key!r} ended meanwhile; its answer is not recorded"
                )
            added = await self._files.append(entry, [each.draft() for each in said], key=idempotency_key)
            calls = [each.usage for each in said if each.message.role == "assistant"]
            if not added:
                return
            await self._touch(key, after_run(entry, calls) if calls else entry)

    async def context(self, key: str) -> Context:
        """What a model is shown of the key's session; empty where there is none."""
        async with self._hold(key):
            entry = await self.registry.get(key)
            if entry is None:
                return Context(None, ())
            if self._clock() - entry.accessed_at >= ACCESS_STEP:
                await self._touch(key, entry)
            return context(await self._files.read(entry))

    async def prompt(self, key: str) -> tuple[Message, ...]:
        """The context for one request: old tool results made small, where the provider's cache is cold (O87)."""
        shown = await self.context(key)
        entry = await self.registry.get(key)
        if entry is None:
            return shown.messages
        calls = [
            item.entry.at for item in shown.items if item.message.role == "assistant" and not item.is_copy
        ]
        return prune(
            shown.messages,
            window=await self._compactor.window(entry),
            now=self._clock(),
            last_call=max(calls, default=None),
            settings=self.settings.pruning,
        )

    async def prepare(self, key: str, *, heartbeat: bool = False) -> Compaction | None:
        """Before a model is asked: save to memory near the threshold, compact over it. What was compacted, if it was due.

        Heartbeats flush nothing (O62). A failed compaction leaves a notice (V35).
        """
        async with self._hold(key):
            entry, _ = await self._files.open(key)
            shown = context(await self._files.read(entry))
            tokens, window = shown.size(self._estimator), await self._compactor.window(entry)
            rules = self.settings.compaction
            path = self._files.transcript(entry).path
            size = path.stat().st_size if path.exists() else 0
            if (
                not heartbeat
                and not flushed_this_cycle(entry)
                and rules.flush_due(tokens=tokens, window=window, file_bytes=size)
            ):
                entry = await self._flusher.run(key, entry, shown, str(Trigger.THRESHOLD))
            if not rules.due(tokens=tokens, window=window):
                return None
            done, _ = await self._compact(key, entry, Trigger.THRESHOLD, "")
            return done

    async def ask(self, key: str, call: Callable[[Sequence[Message]], Awaitable[ModelReply]]) -> ModelReply:
        """Prepare, show the context to `call`, record its reply.

        When the model finds the context too large, it is compacted and asked once more; a second refusal is raised, and
        the session stays (O46).
        """
        await self.prepare(key)
        entry, _ = await self._files.open(key)
        try:
            reply = await call(await self.prompt(key))
        except ModelFault as fault:
            if not is_overflow(fault):
                raise
            done = await self.compact(key, trigger=Trigger.OVERFLOW)
            if done.status is not Status.COMPACTED:
                raise
            entry, _ = await self._files.open(key)
            reply = await call(await self.prompt(key))
        answer = Message("assistant", reply.text, tool_calls=reply.tool_calls)
        said = Said(answer, reply.usage, stop_reason=reply.finish_reason)
        await self.record(key, [said], session_id=entry.session_id)
        return reply

    # -- notices -------------------------------------------------------------------------------------------------------

    def notify(self, key: str, text: str) -> None:
        """Queue a line of the system for the user; a reset drops what waits (O24)."""
        self._notices.setdefault(fold(key), []).append(text)

    def take_notices(self, key: str) -> tuple[str, ...]:
        """What waits for the user of this key, once."""
        return tuple(self._notices.pop(fold(key), ()))

    # -- under the key's lock ------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _hold(self, key: str) -> AsyncIterator[None]:
        async with self._locks.hold(lock_name(key)):
            yield

    async def _known(self, key: str) -> SessionEntry:
        if await self.registry.get(key) is None:
            raise NoSuchSession(
                f"no session under {fold(key)!r}; `memagent sessions list` shows those there are"
            )
        entry, _ = await self._files.open(key)
        return entry

    def _over(self, entry: SessionEntry, kind: str, channel: str) -> str:
        last = entry.last_interaction_at or entry.session_started_at or entry.updated_at
        policy = self.settings.reset.policy(kind=kind, channel=channel or entry.channel)
        return str(stale(policy, last=last, now=self._clock(), zone_name=self._zone_name) or "")

    async def _end(self, key: str, entry: SessionEntry, why: str, asked: Command | None) -> SessionEntry:
        shown = context(await self._files.read(entry))
        entry = await self._flusher.run(key, entry, shown, why)
        self._notices.pop(fold(key), None)
        update: dict[str, Any] = {"last_interaction_at": self._clock()} if asked else {}
        if asked and asked.model:
            update["model_override"] = asked.model
        return await self._files.rotate(
            key,
            entry,
            reason=Reason.RESET,
            carry=asked is not None,
            update=lambda row: row.model_copy(update=update),
        )

    async def _compact(
        self, key: str, entry: SessionEntry, trigger: Trigger, instructions: str
    ) -> tuple[Compaction, SessionEntry]:
        done, entry = await self._compactor.run(key, entry, trigger=trigger, instructions=instructions)
        if trigger is Trigger.THRESHOLD and done.status is Status.FAILED:
            self._notices[fold(key)] = [
                *(each for each in self._notices.get(fold(key), ()) if each != done.notice),
                done.notice,
            ]
        return done, entry

    async def _touch(self, key: str, entry: SessionEntry, **update: Any) -> None:
        now = self._clock()
        row = entry.model_copy(update={"updated_at": now, "last_access_at": now, **update})
        await self.registry.patch(key, lambda _: row)
