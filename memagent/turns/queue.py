"""The queue of turns as the service uses it: accept, follow, look up, replay, erase, sweep."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from memagent.deadline import within
from memagent.errors import Busy, NoSuchTurn, StoreUnavailable
from memagent.memory import Scope, ScopeKind
from memagent.service.observe import opted_out, switched_off
from memagent.service.receipt import whole
from memagent.store.keys import queue_name, turn_handle
from memagent.turns import Durability, Status, Ticket
from memagent.turns.erasure import erase_user
from memagent.turns.news import LOOK_AGAIN_S, News
from memagent.turns.payload import turn_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from memagent.service import Context, Memagent
    from memagent.service.erasure import Erasure
    from memagent.service.receipt import RecallNote
    from memagent.store.queues import Queues
    from memagent.turn import Turn
    from memagent.turns.meters import Meters
    from memagent.turns.payload import Envelope
    from memagent.turns.wakes import Wakes

USER_FULL_RETRY_S = 2.0
TOTAL_FULL_RETRY_S = 5.0
ACCEPT_S = 10.0
"""For taking a turn, which is several calls to Redis: then whoever hands it over is told to do so again."""
NOTES_KEPT = 10_000
"""Of contexts that were given and whose turns have not come yet: a few hundred bytes each."""

SWEPT_AT_ONCE = 1_000
MS_PER_DAY = 86_400_000
UNSEEN_AFTER_S = 60.0
"""An announced turn that is in no line after this long was never accepted."""

FSYNC_MS = 2_000
"""`everysec` flushes within this; a disk that takes longer is told of as not flushed."""


class TurnQueue:
    """Turns of all users. Every method may raise `StoreFault`."""

    def __init__(
        self, memory: Memagent, queues: Queues, wakes: Wakes, envelope: Envelope, meters: Meters
    ) -> None:
        self.memory = memory
        self.meters = meters
        self.wakes = wakes
        self.news = News(queues)
        self._queues = queues
        self._envelope = envelope
        self._options = memory.ports.options
        self._notes: OrderedDict[tuple[str, str], RecallNote] = OrderedDict()

    # -- handing over --------------------------------------------------------------------------------------------------

    async def context(self, turn: Turn) -> Context:
        """Memories for the answer to this turn; kept in mind, so that learning from it need not look again."""
        started = perf_counter()
        found = await self.memory.context(turn)
        self.meters.recalled(found.note, seconds=perf_counter() - started)
        if found.recalled is not None:
            self._notes[turn.user, turn_id(turn)] = found.note
            if len(self._notes) > NOTES_KEPT:
                self._notes.popitem(last=False)
        return found

    async def accept(self, turn: Turn) -> Ticket:
        """Take a turn, once per message id: it is kept until it is learned from or given up.

        Where memory is off, for this user or for all, it is not kept, and over at once.

        Raises `Busy` when the user's line or the whole queue is full, `NoUserKey` for a key that cannot be sealed, and
        `StoreFault` when it is not certain that the turn was taken: hand it over again. Never takes longer than `ACCEPT_S`.
        """
        try:
            return await within(ACCEPT_S, self._accept(turn))
        except TimeoutError:
            raise StoreUnavailable(
                "taking the turn: Redis did not answer in time: hand it over again"
            ) from None

    async def _accept(self, turn: Turn) -> Ticket:
        found, user = turn_id(turn), turn.user
        payload = self._envelope.seal(turn, self._notes.get((user, found)))
        now = self.memory.ports.clock()
        if not await self._queues.announce(user, found, most=self._options.queue_total):
            self.meters.refused.inc()
            raise Busy("too many turns wait: come back later", retry_after_s=TOTAL_FULL_RETRY_S)
        fields = {
            "message_id": turn.message_id,
            "conversation_id": turn.conversation_id,
            "agent_id": turn.agent_id,
            "accepted": now.isoformat(),
        }
        off = switched_off(self.memory.ports, turn)
        receipt = off or opted_out(turn, at=now)
        row, known = await self._queues.accept(
            user,
            found,
            payload,
            fields,
            most=self._options.queue_per_user,
            skipped={"finished": receipt.at, "receipt": json.dumps(receipt.to_json(), ensure_ascii=False)},
            ttl_ms=self._options.receipt_days * MS_PER_DAY,
            off=off is not None,
        )
        if row is None:
            await self._queues.withdraw([(user, found)])
            self.meters.refused.inc()
            raise Busy("too many turns of this user wait: come back later", retry_after_s=USER_FULL_RETRY_S)
        ticket = await self._whole(ticket_of(user, row))
        self._notes.pop((user, found), None)
        if ticket.over:
            await self._queues.withdraw([(user, found)])
        elif not known or ticket.status is Status.QUEUED:
            await self.wakes.wake(user, key=turn_handle(user, found))
        return ticket

    # -- looking ---------------------------------------------------------------------------------------------------------

    async def ticket(self, user: str, found: str) -> Ticket:
        """A turn as it stands; raises `NoSuchTurn`."""
        row = await self._queues.turn(user, found)
        if row is None:
            raise NoSuchTurn(f"there is no turn `{found}`: it was never handed over, or its time is over")
        return await self._whole(ticket_of(user, row))

    async def _whole(self, ticket: Ticket) -> Ticket:
        """The ticket with the receipt that the store keeps, where it has none of its own."""
        if ticket.status is not Status.DONE or ticket.receipt is not None:
            return ticket
        own = Scope(ScopeKind.USER, ticket.user, ticket.agent_id)
        kept = await self.memory.ports.store.receipt(own, ticket.message_id)
        return ticket if kept is None else replace(ticket, receipt=whole(kept).to_json())

    async def follow(self, user: str, found: str) -> AsyncIterator[Ticket]:
        """A turn as it stands, and again whenever that changes, until it is over or this process is about to end.

        Raises `NoSuchTurn` when it is erased.
        """
        seen: Ticket | None = None
        async with self.news.of(turn_handle(user, found)) as changed:
            while seen is None or not (seen.over or self.news.closed.is_set()):
                changed.clear()
                ticket = await self.ticket(user, found)
                if ticket != seen:
                    seen = ticket
                    yield ticket
                    continue
                try:
                    async with asyncio.timeout(LOOK_AGAIN_S):
                        await changed.wait()
                except TimeoutError:
                    continue

    async def finished(self, user: str, found: str, *, timeout_s: float) -> Ticket:
        """A turn when it is over, or as it stands after `timeout_s`."""
        last: Ticket | None = None
        try:
            async with asyncio.timeout(timeout_s):
                async for ticket in self.follow(user, found):
                    last = ticket
        except TimeoutError:
            pass
        return last or await self.ticket(user, found)

    async def synced(self, ticket: Ticket, *, timeout_ms: int = FSYNC_MS) -> Ticket:
        """The turn with `fsynced`, if its state reaches the disk in time; else as it stands."""
        await self._queues.synced(ticket.user, ticket.id, timeout_ms=timeout_ms)
        return await self.ticket(ticket.user, ticket.id)

    # -- administration ----------------------------------------------------------------------------------------------------

    async def dead_letters(self, *, limit: int) -> tuple[Ticket, ...]:
        """What was given up, newest first."""
        found = []
        for user, each in await self._queues.buried(limit=limit):
            row = await self._queues.turn(user, each)
            if row is not None and row["status"] == Status.DEAD:
                found.append(ticket_of(user, row))
        return tuple(found)

    async def replay(self, user: str, found: str) -> Ticket:
        """Try a dead letter again, behind what waits now; raises `NoSuchTurn` when it is none."""
        if not await self._queues.announce(user, found, most=self._options.queue_total):
            raise Busy("too many turns wait: come back later", retry_after_s=TOTAL_FULL_RETRY_S)
        if not await self._queues.replay(user, found):
            await self._queues.withdraw([(user, found)])
            raise NoSuchTurn(f"there is no dead letter `{found}` of this user")
        await self._queues.unbury(user, found)
        await self.wakes.wake(user, key=turn_handle(user, found))
        return await self.ticket(user, found)

    async def erase(self, user: str, *, preferences: bool = False) -> Erasure:
        """Erase everything of a user, turns under way included, and say what was erased and what remains where."""
        for key in [key for key in self._notes if key[0] == user]:
            del self._notes[key]
        return await erase_user(self.memory, self._queues, user, preferences=preferences)

    async def measure(self) -> None:
        """Bring the gauges up to date."""
        waiting = await self._queues.waiting()
        self.meters.waiting.set(waiting.turns)
        self.meters.age.set(waiting.age_ms / 1000)
        self.meters.dead.set(await self._queues.dead())
        self.meters.workers.set(await self.wakes.workers())

    async def sweep(self) -> None:
        """Wake the lines that wait with nobody at work, and forget handles of what waits no more; one process of all does it."""
        lease_ms = self._options.turn_lease_s * 1000
        if not await self._queues.next_to_sweep(every_ms=round(lease_ms / 3)):
            return
        by_user: dict[str, list[tuple[str, float]]] = {}
        for user, each, age_ms in await self._queues.announced(for_ms=lease_ms, limit=SWEPT_AT_ONCE):
            by_user.setdefault(user, []).append((each, age_ms))
        for user, announced in by_user.items():
            line = await self._queues.look(user, [each for each, _ in announced])
            gone = [
                (user, each)
                for (each, age_ms), status in zip(announced, line.statuses, strict=True)
                if (status in {Status.DONE, Status.DEAD}) or (not status and age_ms > UNSEEN_AFTER_S * 1000)
            ]
            await self._queues.withdraw(gone)
            if line.length and not line.held and line.wait_ms <= 0:
                await self.wakes.wake(user, key=queue_name(user))


def ticket_of(user: str, row: Mapping[str, str]) -> Ticket:
    """A turn from its fields."""
    status = Status(row["status"])
    done = Durability.APPLIED if status is Status.DONE else Durability.ACCEPTED
    return Ticket(
        user=user,
        id=row["id"],
        message_id=row["message_id"],
        conversation_id=row["conversation_id"],
        agent_id=row["agent_id"],
        status=status,
        durability=Durability.FSYNCED if row.get("synced") == status else done,
        accepted_at=row["accepted"],
        attempts=int(row.get("attempts", "0")),
        error=json.loads(row["error"]) if "error" in row and status is not Status.DONE else None,
        receipt=json.loads(row["receipt"]) if "receipt" in row else None,
    )
