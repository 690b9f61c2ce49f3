"""LibreChat's verdict on a file: whether the server starts with it, and every issue if not (spec/librechat.md §2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from memagent.config.document import parse, plain
from memagent.config.librechat.parameters import CODE as BEHIND_THE_SCHEMA
from memagent.config.librechat.parameters import broken_parameters
from memagent.config.librechat.root import ROOT
from memagent.config.scalars import is_nan
from memagent.config.zod import Crash, Issue, Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memagent.config.document import Document

Outcome: TypeAlias = Literal["starts", "defaults", "exits", "crashes"]
"""What the server does: takes the file, ignores all of it, stops with code 1, or dies of an exception."""

MOST_SUBAGENTS: Final = 50
USUAL_SUBAGENTS: Final = 10


@dataclass(frozen=True, slots=True)
class Verdict:
    """What LibreChat makes of a file. `issues` are the schema's, or the checks' behind it; none where it never got there.

    `reason` is why it crashes or falls back to its defaults without any issue.
    """

    ok: bool
    outcome: Outcome
    issues: tuple[Issue, ...] = ()
    reason: str = ""

    @property
    def accepted(self) -> bool:
        """The schema takes the file, whatever the checks behind it say: the reference verdict's `ok`."""
        return self.ok or (
            bool(self.issues) and all(issue.code == BEHIND_THE_SCHEMA for issue in self.issues)
        )

    @property
    def schema_issues(self) -> tuple[Issue, ...]:
        return tuple(issue for issue in self.issues if issue.code != BEHIND_THE_SCHEMA)


def verdict(document: Document, environ: Mapping[str, str]) -> Verdict:  # noqa: PLR0911 - one for each way to start
    """Judge a document as LibreChat would on a machine with this environment; some URLs depend on it.

    A file past our own limits (`MEM003`, `MEM005`), which LibreChat has not, counts as one that cannot be read.
    """
    if document.root is None:
        finding = document.findings[0]
        if finding.code == "MEM002":
            # LibreChat reads bytes that are no UTF-8 as U+FFFD, and goes on.
            return verdict(parse(document.text.encode("utf-8"), document.file), environ)
        return Verdict(ok=False, outcome="defaults", reason=finding.message)
    value = plain(document.root)
    if isinstance(value, str) and value:
        # LibreChat takes a text for a file that came over the network, and reads it once more.
        inner = parse(value.encode("utf-8"), document.file)
        if inner.root is None and inner.findings[0].code != "MEM006":
            return Verdict(ok=False, outcome="defaults", reason=inner.findings[0].message)
        return _judge(plain(inner.root) if inner.root else None, environ)
    if value is None or value is False or is_nan(value) or value in (0, ""):
        return Verdict(ok=False, outcome="defaults", reason="the document is empty")
    if isinstance(value, dict) and not value.keys().isdisjoint(("reason", "stack")):
        said = "a key `reason` or `stack` at the top is taken for an error of the YAML reader"
        return Verdict(ok=False, outcome="defaults", reason=said)
    return _judge(value, environ)


def _judge(value: Any, environ: Mapping[str, str]) -> Verdict:
    run = Run(environ, _max_subagents(value))
    try:
        ROOT.read(value, (), run)
    except Crash as crash:
        return Verdict(ok=False, outcome="crashes", reason=str(crash))
    if run.issues:
        crashes = any("imageOutputType" in issue.path for issue in run.issues)
        return Verdict(ok=False, outcome="crashes" if crashes else "exits", issues=tuple(run.issues))
    broken = tuple(broken_parameters(value.get("endpoints")))
    if broken:
        return Verdict(
            ok=False, outcome="crashes", issues=broken, reason="a definition of a parameter is broken"
        )
    return Verdict(ok=True, outcome="starts")


def _max_subagents(value: Any) -> int:
    """How many subagents a model spec may name: what the agents endpoint says, if that is a sound number."""
    for step in ("endpoints", "agents", "maxSubagents"):
        value = value.get(step) if isinstance(value, dict) else None
    sound = type(value) in (int, float) and 1 <= value <= MOST_SUBAGENTS and value == int(value)
    return int(value) if sound else USUAL_SUBAGENTS
