"""One turn judged: what was asked for against what was done. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memagent.lexicon import fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memagent.evaluation.labelled import Fact, Labelled
    from memagent.evaluation.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one turn that a model answered.

    `stored` is what is remembered anew or in other words. Each of its keys stands in one of `right`, `forbidden`,
    `duplicates`, `extra` and `allowed`. `misplaced` facts are found all the same. `lost` was deleted without being asked.
    """

    labelled: Labelled
    stored: Mapping[str, str]
    right: frozenset[str]
    forbidden: frozenset[str]
    duplicates: frozenset[str]
    extra: frozenset[str]
    allowed: frozenset[str]
    missed: tuple[Fact, ...]
    misplaced: tuple[tuple[Fact, str], ...]
    deleted: frozenset[str]
    """Of the expected deletions, those that were made."""
    undeleted: frozenset[str]
    lost: frozenset[str]
    held_back: frozenset[str]
    """Of the forbidden, what memagent distrusts by itself: no prompt shows it."""

    @property
    def wanted(self) -> int:
        return len(self.labelled.expect) + len(self.labelled.deleted)

    @property
    def found(self) -> int:
        return self.wanted - len(self.missed) - len(self.undeleted)

    @property
    def done(self) -> int:
        """Acts that count: what was stored and deleted, without what is allowed."""
        return len(self.stored) - len(self.allowed) + len(self.deleted) + len(self.lost)

    @property
    def done_right(self) -> int:
        return len(self.right) + len(self.deleted)

    @property
    def is_violated(self) -> bool:
        """Something was stored that must not be, or destroyed that must stay."""
        return bool(self.forbidden or self.lost)

    @property
    def badness(self) -> int:
        """How much a reader should look at this turn; 0 when nothing is wrong."""
        return (
            20 * len(self.forbidden | self.lost)
            + 5 * (len(self.missed) + len(self.undeleted))
            + 3 * len(self.misplaced)
            + 2 * len(self.extra)
            + len(self.duplicates)
        )


def judge(labelled: Labelled, outcome: Outcome) -> Verdict:
    """Compare; `outcome` must be one that the model answered.

    A fact is sought in every stored value, and one value may hold several. Of values that say the same fact the one under
    a right key counts, the others are duplicates.
    """
    before, after = labelled.remembered, outcome.after
    stored = {
        key: value
        for key, value in after.items()
        if key not in before or fingerprint(before[key]) != fingerprint(value)
    }
    found = {number: _place(labelled, fact, stored) for number, fact in enumerate(labelled.expect)}
    used = frozenset(key for key in found.values() if key is not None)
    forbidden = frozenset(key for key, value in stored.items() if labelled.forbids(key, value))
    rest = stored.keys() - used - forbidden
    duplicates = frozenset(key for key in rest if _says_any(labelled.expect, stored[key]))
    allowed = frozenset(key for key in rest - duplicates if _may_stand(labelled, key, stored[key]))
    placed = [(fact, found[number]) for number, fact in enumerate(labelled.expect)]
    misplaced = tuple(
        (fact, key) for fact, key in placed if key is not None and not labelled.takes(fact, key)
    )
    gone = before.keys() - after.keys()
    moved = {key for fact, _ in misplaced for key in fact.keys}
    return Verdict(
        labelled=labelled,
        stored=stored,
        right=used - forbidden,
        forbidden=forbidden,
        duplicates=duplicates,
        extra=frozenset(rest - duplicates - allowed),
        allowed=allowed,
        missed=tuple(fact for fact, key in placed if key is None),
        misplaced=misplaced,
        deleted=labelled.deleted & gone,
        undeleted=labelled.deleted - gone,
        lost=frozenset(gone - labelled.deleted - moved),
        held_back=forbidden & frozenset(outcome.untrusted),
    )


def _place(labelled: Labelled, fact: Fact, stored: Mapping[str, str]) -> str | None:
    """The key under which `fact` was stored: a right one if there is one."""
    saying = [key for key, value in stored.items() if fact.is_said_by(value)]
    return next((key for key in saying if labelled.takes(fact, key)), saying[0] if saying else None)


def _says_any(facts: tuple[Fact, ...], value: str) -> bool:
    return any(fact.is_said_by(value) for fact in facts)


def _may_stand(labelled: Labelled, key: str, value: str) -> bool:
    return any(fact.is_said_by(value) and labelled.takes(fact, key) for fact in labelled.allow)
