"""The receipt of a turn whose worker died between applying it and saying so: made whole from what the store remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memagent.service import hands
from memagent.service.observe import done
from memagent.service.receipt import Cost, Decision, RecallNote, Receipt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memagent.service.ports import Ports
    from memagent.turn import Turn


async def mended(ports: Ports, turn: Turn) -> Receipt | None:
    """The whole receipt of a turn that was applied before, or None when it is kept no more. Raises `StoreFault`."""
    kept = await ports.store.receipt(turn.own, turn.message_id)
    if kept is None or kept.get("decision") != Decision.RAN:
        return None
    receipt = receipt_of(kept)
    if receipt.timings_ms:
        return receipt
    # A message that was applied is not applied again: an empty apply answers with what came of the first.
    limits = hands.limits(ports, turn.own)
    earlier = await ports.store.apply(
        turn.own, [], limits=limits, now=ports.clock(), message_id=turn.message_id
    )
    whole = done(receipt, earlier, again=True)
    await ports.store.save_receipt(turn.own, turn.message_id, whole.to_json())
    return whole


def receipt_of(kept: Mapping[str, Any]) -> Receipt:
    """A receipt from its JSON."""
    rows = {name: tuple(kept[name]) for name in TUPLES}
    return Receipt(
        **{
            **kept,
            **rows,
            "decision": Decision(kept["decision"]),
            "recall": RecallNote.from_json(kept["recall"]),
            "cost": Cost(**kept["cost"]),
        }
    )


TUPLES = ("calls", "tools", "set", "refreshed", "deleted", "refused", "forgotten")
