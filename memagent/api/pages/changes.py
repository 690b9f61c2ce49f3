"""Changes as their user sees them: what was done to which memory, and whether it can be taken back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memagent.memory import Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.store import Change


@dataclass(frozen=True, slots=True)
class Row:
    """One change. `kind` is what a reader calls it: `added`, `changed`, `deleted`, `forgotten`, `undone`, `accepted`."""

    change: Change
    kind: str
    undone: bool
    is_newest: bool
    """Of its key: an older one cannot be taken back, since the memory changed after it."""

    @property
    def by_hand(self) -> bool:
        return self.change.source is Source.USER


def rows(changes: Sequence[Change]) -> tuple[Row, ...]:
    """Newest first, as given; a change that another one of them takes back is marked."""
    taken_back = {change.undoes for change in changes if change.undoes}
    newest = {change.key: change.id for change in reversed(changes)}
    return tuple(
        Row(change, kind(change), change.id in taken_back, newest[change.key] == change.id)
        for change in changes
    )


def kind(change: Change) -> str:
    if change.undoes:
        return "undone"
    if change.op == "forget":
        return "forgotten"
    if change.after is None:
        return "deleted"
    if change.before is None:
        return "added"
    return "accepted" if change.before == change.after else "changed"
