"""Carrying out a compaction: checks, memory flush, summary, and the rotation to a session that begins with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memagent.errors import MemagentError
from memagent.sessions.archive import Reason
from memagent.sessions.compaction import (
    FALLBACK_WINDOW_TOKENS,
    Compaction,
    Plan,
    Status,
    Trigger,
    counted,
    plan,
)
from memagent.sessions.context import context, summary_message
from memagent.sessions.rotation import beginning
from memagent.sessions.summary import Summariser
from memagent.sessions.usage import after_compaction, after_run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from memagent.llm import ChatModel
    from memagent.sessions.compaction import CompactionSettings
    from memagent.sessions.context import Context
    from memagent.sessions.entry import SessionEntry
    from memagent.sessions.estimator import TokenCountEstimator
    from memagent.sessions.flush import Flusher
    from memagent.sessions.rotation import SessionFiles
    from memagent.sessions.summary import Summary

    Window = Callable[[str], Awaitable[int | None]]
    """Tokens of a model's window by its name, None when it is not known; `Gateway.context_window` is one."""


class Compactor:
    """Compacts sessions; `window` knows the tokens of a model's window by its name."""

    def __init__(
        self,
        files: SessionFiles,
        *,
        settings: CompactionSettings,
        estimator: TokenCountEstimator,
        flusher: Flusher,
        model: ChatModel | None = None,
        model_name: str = "",
        window: Window | None = None,
    ) -> None:
        self._files = files
        self._settings = settings
        self._estimator = estimator
        self._flusher = flusher
        self._summariser = Summariser(model, weigh=estimator.count_message) if model else None
        self._model_name = model_name
        self._window = window

    async def window(self, entry: SessionEntry) -> int:
        """Tokens of the window of the session's model."""
        known = self._settings.window_tokens
        name = entry.model_override or self._model_name
        if known is None and self._window is not None and name:
            known = await self._window(name)
        return known or FALLBACK_WINDOW_TOKENS

    async def run(
        self, key: str, entry: SessionEntry, *, trigger: Trigger, instructions: str = ""
    ) -> tuple[Compaction, SessionEntry]:
        """Compact the session, or say why not; then nothing has changed (O52). The row as it is afterwards.

        The caller holds the key's lock: what arrives meanwhile waits, and goes to the new session (V36).
        """
        shown = context(await self._files.read(entry))
        before = shown.size(self._estimator)
        window = await self.window(entry)

        def unchanged(status: Status, reason: str) -> tuple[Compaction, SessionEntry]:
            return Compaction(
                status, before, before, reason, entry.session_id, entry.parent_session_id
            ), entry

        if reason := self._refusal(shown, trigger, before, window):
            return unchanged(Status.SKIPPED, reason)
        divided = self._plan(shown, trigger, before, window)
        if divided is None:
            return unchanged(Status.SKIPPED, "nothing lies before the part that is kept")
        if not divided.has_conversation and trigger is Trigger.MANUAL:
            return unchanged(Status.SKIPPED, "nobody has said anything yet")
        if self._summariser is None:
            return unchanged(Status.FAILED, "no model is set up to write the summary")
        entry = await self._flusher.run(key, entry, shown, str(trigger))
        try:
            summary = await self._summariser.summarise(divided, window=window, instructions=instructions)
        except MemagentError as fault:
            return unchanged(Status.FAILED, f"the summary could not be written ({fault.code})")
        return await self._rotate(key, entry, shown, divided, summary)

    def _refusal(self, shown: Context, trigger: Trigger, before: int, window: int) -> str:
        said = counted(shown)
        if not shown.items or (shown.summary is not None and said == 0):
            return "nothing was said since the last compaction"
        if trigger is not Trigger.OVERFLOW and said < self._settings.min_messages:
            return f"{said} messages since the last compaction, fewer than {self._settings.min_messages}"
        if trigger is Trigger.THRESHOLD and not self._settings.due(tokens=before, window=window):
            return "the context is within its limit"
        return ""

    def _plan(self, shown: Context, trigger: Trigger, before: int, window: int) -> Plan | None:
        weigh = self._estimator.count_message
        keep = self._settings.keep(window)
        found = plan(shown, keep_tokens=keep, weigh=weigh)
        if found is None and trigger is not Trigger.THRESHOLD:
            # Asked for by hand, or by a window smaller than we know: the older half goes.
            found = plan(shown, keep_tokens=min(keep, before // 2), weigh=weigh)
        return found

    async def _rotate(
        self, key: str, entry: SessionEntry, shown: Context, divided: Plan, summary: Summary
    ) -> tuple[Compaction, SessionEntry]:
        before = shown.size(self._estimator)
        kept = [item.message for item in divided.kept]
        after = self._estimator.count_messages([summary_message(summary.text), *kept])
        old = after_run(entry, summary.calls) if summary.calls else entry

        def finish(row: SessionEntry) -> SessionEntry:
            marked = after_compaction(row, after)
            return marked.model_copy(update={"compaction_count": entry.compaction_count + 1})

        marks = {"tokensBefore": before, "omitted": summary.omitted, "parentSession": entry.session_id}
        drafts = beginning(shown, divided.kept, entry.session_id, summary=summary.text, **marks)
        new = await self._files.rotate(
            key, old, reason=Reason.COMPACTED, carry=True, drafts=drafts, update=finish
        )
        done = Compaction(Status.COMPACTED, before, after, "", new.session_id, entry.session_id, summary.text)
        return done, new
