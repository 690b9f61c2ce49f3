"""What is asked for, and what a run came to."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

CALM = "calm"
"""While no fault is on, nor its end being waited for."""


@dataclass(frozen=True, slots=True)
class Plan:
    turns: int
    users: int
    seed: int
    rounds: int
    """Faults, one after the other; turns are spread over all of them."""
    kinds: tuple[str, ...]
    hold_s: float = 4.0
    """A fault lasts for half to one and a half times of this."""
    rest_s: float = 1.0
    workers: int = 2
    entries: int = 30
    """`MEMAGENT_MAX_MEMORIES`: what comes after is refused, and must be."""
    tokens: int = 400
    """`tokenLimit`: every second user says more, and comes to this one first."""
    budget_ms: float = 150.0
    grace_ms: float = 850.0
    """On top of the recall budget, for everything else of a request and for a machine whose cores all of this shares."""
    post_ms: float = 11_000.0
    """In which a turn is accepted or refused."""
    recovery_s: float = 60.0
    chats: int = 4
    """Backends that ask for context all the time."""
    mount: bool = True


@dataclass(frozen=True, slots=True)
class Happened:
    """One fault."""

    kind: str
    what: str
    at_s: float
    held_s: float
    recovered_s: float
    """From its end until a turn that is handed over then is learned from."""


@dataclass
class Answers:
    """Of one kind of request, while one kind of fault was on."""

    ms: list[float] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)

    def row(self) -> dict[str, object]:
        times = sorted(self.ms)

        def share(part: float) -> float:
            return round(times[min(len(times) - 1, int(len(times) * part))], 1) if times else 0.0

        return {"answers": dict(self.codes), "p50": share(0.5), "p99": share(0.99), "max": share(1.0)}


@dataclass
class Report:
    accepted: int = 0
    posts: int = 0
    samples: int = 0
    """Looks at a user's limits and counted dates in the middle of it."""
    happened: list[Happened] = field(default_factory=list)
    chat: defaultdict[str, Answers] = field(default_factory=lambda: defaultdict(Answers))
    hand_over: defaultdict[str, Answers] = field(default_factory=lambda: defaultdict(Answers))
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0
    disk: str = ""

    def kinds(self) -> Counter[str]:
        return Counter(each.kind for each in self.happened)

    def shown(self) -> dict[str, object]:
        recovered = {
            kind: max(each.recovered_s for each in self.happened if each.kind == kind)
            for kind in self.kinds()
        }
        return {
            "accepted": self.accepted,
            "posts": self.posts,
            "limit samples": self.samples,
            "faults injected": dict(self.kinds()),
            "disk": self.disk,
            "longest recovery, s": recovered,
            "context": {kind: answers.row() for kind, answers in sorted(self.chat.items())},
            "turns": {kind: answers.row() for kind, answers in sorted(self.hand_over.items())},
            "seconds": round(self.seconds),
            "faults": self.faults[:50],
        }
