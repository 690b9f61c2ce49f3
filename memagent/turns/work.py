"""Learning from the turns of one line, one at a time and in order: attempts, pauses, and giving up."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from memagent.errors import MemagentError, StoreFault
from memagent.service.observe import failed
from memagent.service.receipt import Decision, Reason, Receipt, whole
from memagent.store.keys import turn_handle
from memagent.turns import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memagent.service import Memagent
    from memagent.store.queues import Queues, Taken
    from memagent.turn import Turn
    from memagent.turns.meters import Meters
    from memagent.turns.payload import Envelope
    from memagent.turns.wakes import Wakes

log = logging.getLogger("memagent.worker")

IN_A_ROW = 8
"""Turns of one user before the others get their go."""

MAX_BACKOFF_S = 300.0

STARTS_PER_ATTEMPT = 3
"""A turn that was begun this often per attempt, and never ended, takes its worker down with it."""

MS_PER_DAY = 86_400_000


class Learner:
    """What a wake does. Safe to run in many workers: a line is one worker's at a time."""

    def __init__(
        self, memory: Memagent, queues: Queues, wakes: Wakes, envelope: Envelope, meters: Meters
    ) -> None:
        self.memory = memory
        self.queues = queues
        self.wakes = wakes
        self.envelope = envelope
        self.meters = meters
        self.options = memory.ports.options
        self.lease_ms = round(self.options.turn_lease_s * 1000)

    async def learn(self, user: str) -> None:
        """Learn from what waits in this user's line, a few turns at most, and leave word for the rest.

        Never raises but for a stop: what cannot be written down now is swept up later.
        """
        token = uuid4().hex
        try:
            for left in reversed(range(IN_A_ROW)):
                taken = await self.queues.take(user, token, lease_ms=self.lease_ms)
                if taken.turn is None or taken.wait_ms:
                    await self._come_back(user, taken)
                    return
                if not await self._one(user, token, taken, on=left > 0):
                    return
            await self.wakes.wake(user, key=turn_handle(user, token))
        except StoreFault as fault:
            log.warning("a turn waits for the store", extra={"code": fault.code})

    async def _come_back(self, user: str, taken: Taken) -> None:
        if taken.turn is not None and taken.wait_ms:
            attempts = taken.turn.get("attempts", "0")
            await self._wake_for(user, taken.turn, attempts, delay_s=taken.wait_ms / 1000)

    async def _one(self, user: str, token: str, taken: Taken, *, on: bool) -> int:
        """Learn from one turn and write down what became of it: how many wait behind it.

        0 when the line rests, or is another's: the lease ran out meanwhile, or the user was erased.
        """
        turn = taken.turn or {}
        if int(turn.get("starts", "1")) > self.options.turn_attempts * STARTS_PER_ATTEMPT:
            return await self._give_up(user, token, turn, broken(self._blank(user, turn), *KILLED), on=on)
        receipt = await self._held(user, token, taken)
        if receipt is None:
            return 0
        error = receipt.error if receipt.decision is Decision.FAILED else None
        if error is None:
            return await self._done(user, token, turn, receipt, on=on)
        attempts = int(turn.get("attempts", "0")) + 1
        if error["retryable"] and attempts < self.options.turn_attempts:
            return await self._again(user, token, turn, error, attempts)
        return await self._give_up(user, token, turn, receipt, on=on)

    async def _held(self, user: str, token: str, taken: Taken) -> Receipt | None:
        """Learn from the turn while the lease is renewed; None when it is lost."""
        work = asyncio.create_task(self._observed(user, taken))
        try:
            while True:
                done, _ = await asyncio.wait({work}, timeout=self.options.turn_lease_s / 3)
                if done:
                    return work.result()
                if not await self.queues.renew(user, token, lease_ms=self.lease_ms):
                    return None
        finally:
            work.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await work

    async def _observed(self, user: str, taken: Taken) -> Receipt:
        blank = self._blank(user, taken.turn or {})
        try:
            turn, recalled = self.envelope.open(taken.payload)
            receipt = await self.memory.observe(turn, recalled=recalled)
            return await self._whole(turn, receipt)
        except StoreFault:
            raise
        except MemagentError as fault:
            return failed(blank, fault)
        except Exception as bug:  # noqa: BLE001  one turn's bug must not stop the line; its words may quote what was said
            log.error("a bug", extra={"kind": type(bug).__name__, "message_id": blank.message_id})  # noqa: TRY400  no traceback: see above
            return broken(blank, *BUG)

    async def _whole(self, turn: Turn, receipt: Receipt) -> Receipt:
        """The receipt of a turn whose worker died between applying it and saying so."""
        if receipt.reason != Reason.ALREADY_SEEN:
            return receipt
        kept = await self.memory.ports.store.receipt(turn.own, turn.message_id)
        return receipt if kept is None else whole(kept)

    async def _done(
        self, user: str, token: str, turn: Mapping[str, str], receipt: Receipt, *, on: bool
    ) -> int:
        return await self._over(
            user, token, turn, receipt, Status.DONE, days=self.options.receipt_days, on=on
        )

    async def _give_up(
        self, user: str, token: str, turn: Mapping[str, str], receipt: Receipt, *, on: bool
    ) -> int:
        days = self.options.dead_letter_days
        # Before it is dead, so that none is dead unseen; the list leaves out what is not.
        await self.queues.bury(user, turn["id"], keep_ms=days * MS_PER_DAY)
        return await self._over(user, token, turn, receipt, Status.DEAD, days=days, on=on)

    async def _over(
        self,
        user: str,
        token: str,
        turn: Mapping[str, str],
        receipt: Receipt,
        status: Status,
        *,
        days: int,
        on: bool,
    ) -> int:
        fields = {"finished": receipt.at}
        if receipt.decision is not Decision.RAN:  # that one the store keeps
            fields["receipt"] = json.dumps(receipt.to_json(), ensure_ascii=False)
        if status is Status.DEAD:
            fields["attempts"] = str(int(turn.get("attempts", "0")) + 1)
            fields["error"] = json.dumps(receipt.error)
        left = await self.queues.settle(
            user, turn["id"], token, status=status, fields=fields, ttl_ms=days * MS_PER_DAY, on=on
        )
        if left is None:
            return 0
        await self.queues.withdraw([(user, turn["id"])])
        self._told(turn, receipt, status)
        return left

    async def _again(
        self, user: str, token: str, turn: Mapping[str, str], error: Mapping[str, Any], attempts: int
    ) -> int:
        delay_s = min(self.options.turn_backoff_s * 2 ** (attempts - 1), MAX_BACKOFF_S)
        fields = {"attempts": str(attempts), "error": json.dumps(error)}
        left = await self.queues.settle(
            user, turn["id"], token, status=Status.QUEUED, fields=fields, delay_ms=round(delay_s * 1000)
        )
        if left is not None:
            self.meters.retries.labels(str(error["code"])).inc()
            log.warning(
                "a turn is tried again later",
                extra={"turn": turn["id"], "code": error["code"], "delay_s": delay_s},
            )
            await self._wake_for(user, turn, str(attempts), delay_s=delay_s)
        return 0

    async def _wake_for(self, user: str, turn: Mapping[str, str], attempts: str, *, delay_s: float) -> None:
        await self.wakes.wake(user, key=turn_handle(user, f"{turn['id']}-{attempts}"), delay_s=delay_s)

    def _blank(self, user: str, turn: Mapping[str, str]) -> Receipt:
        return Receipt(
            user=user,
            conversation_id=turn.get("conversation_id", ""),
            message_id=turn.get("message_id", ""),
            at=self.memory.ports.clock().isoformat(),
            decision=Decision.FAILED,
        )

    def _told(self, turn: Mapping[str, str], receipt: Receipt, status: Status) -> None:
        self.meters.ended(receipt, status)
        level = logging.INFO if status is Status.DONE else logging.WARNING
        extra = {
            "turn": turn["id"],
            "status": status.value,
            "outcome": receipt.decision.value,
            "reason": receipt.reason or (receipt.error or {}).get("code", ""),
            "set": len(receipt.set),
            "ms": receipt.timings_ms.get("total"),
        }
        log.log(level, "a turn is over", extra=extra)


BUG = ("internal_error", "a bug in memagent; the log has its kind")
KILLED = ("worker_killed", "every worker that began this turn ended before it was done")


def broken(receipt: Receipt, code: str, message: str) -> Receipt:
    """The receipt of a turn that no fault of ours names."""
    return replace(receipt, detail=message, error={"code": code, "message": message, "retryable": False})
