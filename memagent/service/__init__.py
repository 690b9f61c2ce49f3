"""The use cases, as one object: observe a turn, recall, and everything a person may do with what is remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memagent.errors import BadRequest, NoSuchMemory, NoSuchTurn
from memagent.memory import Message, Scope, ScopeKind, Source
from memagent.service import erasure, hands, transfer
from memagent.service.observe import observe
from memagent.service.recall import SOURCES, Context, context, memory_is_off, recall
from memagent.service.receipt import whole
from memagent.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from memagent.llm import ToolSpec
    from memagent.memory import Memory
    from memagent.service.erasure import Eraser, Erasure
    from memagent.service.imports import Format
    from memagent.service.ports import Ports
    from memagent.service.receipt import RecallNote, Receipt
    from memagent.service.transfer import ImportReport
    from memagent.store import Change, Totals

__all__ = ["Context", "Memagent"]


class Memagent:
    """Memory for one configuration; safe to share between tasks. `memagent.open` makes one.

    Wherever a scope is asked for, a user's id stands for that user's own shared pool. Every method may raise
    `StoreUnavailable`; an outage is never an empty list.
    """

    def __init__(self, ports: Ports) -> None:
        self.ports = ports

    # -- turns --------------------------------------------------------------------------------------------------------

    async def context(self, turn: Turn) -> Context:
        """Memories for the answer, within the recall budget; never raises for a memory that is down (see `note.error`)."""
        return await context(self.ports, turn)

    async def observe(self, turn: Turn, *, recalled: RecallNote | None = None) -> Receipt:
        """Learn from a turn, exactly once per message id, and say what was done.

        `recalled` is the note of the context this turn was answered with; without it the turn is recalled first, so that
        its day counts. A model that fails is a receipt that says so, never an exception. Where transcripts are kept,
        what was said is kept first, also when nothing can be learned from it.
        """
        passages = self.ports.passages
        if passages is None or memory_is_off(self.ports):
            return await observe(self.ports, turn, recalled=recalled)
        quoted = await passages.keep(turn, recalled)
        return await observe(self.ports, turn, recalled=recalled, quoted=quoted)

    async def recall(
        self,
        user: str,
        text: str,
        *,
        agent: str = "",
        shared: tuple[str, ...] = (),
        commit: bool = True,
        sources: Collection[str] | None = None,
    ) -> Context:
        """Search with one text as if the user had just said it. `commit` false looks without counting.

        `sources` asks these of `memories`, `turns` and `notes`, whatever a turn would ask; raises `BadRequest` for others.
        """
        if unknown := sorted({*(sources or ())} - {*SOURCES}):
            raise BadRequest(f"{', '.join(unknown)} cannot be searched: choose of {', '.join(SOURCES)}")
        said = Turn(user, "", (Message("user", text),), agent_id=agent, shared=shared)
        return await recall(self.ports, said, commit=commit, sources=sources)

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """`memory_search` and `memory_get` for a model to call, where transcripts or notes are kept; else none."""
        if self.ports.passages is None or memory_is_off(self.ports):
            return ()
        from memagent.service.passages import TOOLS  # noqa: PLC0415  only where passages are kept

        return TOOLS

    async def call_tool(self, user: str | Scope, name: str, arguments: str) -> dict[str, Any]:
        """Answer a model's call of one of `tools`, its arguments as the model wrote them; an answer, whatever happens."""
        if self.ports.passages is None:
            return {"error": "neither transcripts nor notes are kept here"}
        from memagent.service.passages import answer  # noqa: PLC0415  only where passages are kept

        return await answer(self.ports, self.ports.passages, scope_of(user), name, arguments)

    async def why(self, user: str | Scope, message_id: str) -> Mapping[str, Any]:
        """The stored receipt of a turn; raises `NoSuchTurn`."""
        kept = await self.ports.store.receipt(scope_of(user), message_id)
        if kept is None:
            raise NoSuchTurn(
                f"no receipt for message `{message_id}`: it was never handed over, or is older than "
                f"{self.ports.options.receipt_days} days"
            )
        return whole(kept).to_json()

    # -- memories -----------------------------------------------------------------------------------------------------

    async def list(self, user: str | Scope) -> tuple[Memory, ...]:
        """All memories, newest update first."""
        days = hands.dormant_after(self.ports)
        return await self.ports.store.list(scope_of(user), dormant_after_days=days)

    async def get(self, user: str | Scope, key: str) -> Memory:
        """One memory; raises `NoSuchMemory`."""
        days = hands.dormant_after(self.ports)
        memory = await self.ports.store.get(scope_of(user), key, dormant_after_days=days)
        if memory is None:
            raise NoSuchMemory(f"there is no memory under `{key}`")
        return memory

    async def put(
        self,
        user: str | Scope,
        key: str,
        value: str,
        *,
        tags: tuple[str, ...] = (),
        create_only: bool = False,
        rename_from: str | None = None,
    ) -> Memory:
        """Write one memory by hand, which protects it from being forgotten (T33)."""
        return await hands.put(
            self.ports,
            scope_of(user),
            key,
            value,
            source=Source.USER,
            tags=tags,
            create_only=create_only,
            rename_from=rename_from,
        )

    async def scopes(self, user: str) -> tuple[Scope, ...]:
        """Where anything is kept of this user: the own pool, partitions of agents, the global memories."""
        return await self.ports.store.scopes(user)

    async def review(self, user: str | Scope) -> tuple[Memory, ...]:
        """What waits for the user: brought in by a tool or a quotation, and in no prompt until it is accepted."""
        return tuple(memory for memory in await self.list(user) if not memory.trusted)

    async def accept(self, user: str | Scope, key: str) -> Memory:
        """Accept one memory that was not trusted; raises `NoSuchMemory`. `forget` is how it is turned down."""
        return await hands.accept(self.ports, scope_of(user), key)

    async def forget(self, user: str | Scope, key: str) -> None:
        """Delete one memory; raises `NoSuchMemory`."""
        await hands.forget(self.ports, scope_of(user), key)

    async def undo(self, user: str | Scope, change_id: str | None = None) -> Change:
        """Take back one change, the newest if none is named."""
        return await hands.undo(self.ports, scope_of(user), change_id)

    async def history(
        self, user: str | Scope, *, key: str | None = None, limit: int = 50
    ) -> tuple[Change, ...]:
        """Changes, newest first."""
        return await self.ports.store.history(scope_of(user), key=key, limit=limit)

    async def totals(self, user: str | Scope) -> Totals:
        return await self.ports.store.totals(scope_of(user))

    # -- in and out, consent --------------------------------------------------------------------------------------------

    async def export(self, user: str | Scope) -> dict[str, Any]:
        """Everything remembered, as JSON that `import_memories` takes back."""
        return transfer.exported(await self.list(user), user=scope_of(user).owner)

    async def export_markdown(self, user: str | Scope) -> str:
        """Everything remembered, for people to read."""
        return transfer.as_markdown(await self.list(user), user=scope_of(user).owner)

    async def import_memories(
        self,
        user: str | Scope,
        data: Any,
        *,
        source: Format | None = None,
        owner: str | None = None,
        dry_run: bool = False,
    ) -> ImportReport:
        """Bring memories in, from `service.imports.decode`; all that fit, with a report of what did not and why.

        `source` None finds the format out. `owner` is whose memories are wanted, as the data names them, where it holds
        those of several people. Raises `BadRequest` when the whole cannot be read.
        """
        return await transfer.bring_in(
            self.ports, scope_of(user), data, source=source, owner=owner, dry_run=dry_run
        )

    async def personalization(self, user: str) -> bool:
        """Whether memory is switched on for this user."""
        return await hands.personalization(self.ports, user)

    async def set_personalization(self, user: str, *, on: bool) -> None:
        """Switch memory on or off; what is remembered stays until the user deletes it."""
        await hands.set_personalization(self.ports, user, on=on)

    async def erase(self, user: str | Scope) -> Mapping[str, int]:
        """Erase everything of a scope: memories, vectors, history, receipts; counts per kind."""
        return await self.ports.store.erase(scope_of(user))

    async def erase_user(
        self,
        user: str,
        *,
        closed: Mapping[Scope, Sequence[str]] | None = None,
        preferences: bool = False,
        also: Sequence[Eraser] = (),
    ) -> Erasure:
        """Erase everything that is kept of a user, turns that are searched too, and report what remains where."""
        also = (*also, *self.ports.erasers)
        return await erasure.erase_user(self.ports, user, closed=closed, preferences=preferences, also=also)


def scope_of(user: str | Scope) -> Scope:
    return user if isinstance(user, Scope) else Scope(ScopeKind.USER, user)
