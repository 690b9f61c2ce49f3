"""The check: everything that is wrong with a document, in one run, each fault once."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from memagent.config.check.draft import Draft
from memagent.config.check.endpoints import check_endpoints
from memagent.config.check.memory import check_memory
from memagent.config.check.plain import check_plain
from memagent.config.check.provider import check_provider
from memagent.config.check.rejected import report_verdict
from memagent.config.check.unread import check_unread
from memagent.config.check.variables import check_variables
from memagent.config.librechat.verdict import verdict
from memagent.config.nodes import Mapping as MappingNode
from memagent.config.secrecy import hidden_words, hide, scalars

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memagent.config.document import Document
    from memagent.config.findings import Finding
    from memagent.config.librechat.verdict import Verdict

INDEX = re.compile(r"\[\d+\]")


def check(
    document: Document,
    judged: Verdict | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    check_env: bool = False,
) -> tuple[Finding, ...]:
    """All findings of a document, in order.

    `environ` is the server's environment as far as it is known, empty if not given; `check_env` says that it is known, and
    that a variable which it does not set is a fault. `judged` is LibreChat's verdict in that environment, taken if not given.
    """
    environ = environ or {}
    draft = Draft(document)
    if document.root is None:
        hidden = hidden_words(document)
        return tuple(_without_secrets(finding, hidden) for finding in document.findings)
    report_verdict(draft, judged or verdict(document, environ), environ)
    if isinstance(document.root, MappingNode):
        check_unread(draft)
        check_memory(draft)
        check_provider(draft)
        check_endpoints(draft)
        for path, scalar in scalars(document.root):
            check_variables(draft, path, scalar, environ=environ if check_env else None)
            if not draft.is_blamed(path, path[:-1]):
                check_plain(draft, path, scalar)
    return _once(draft.findings)


def _once(findings: list[Finding]) -> tuple[Finding, ...]:
    """In order, and each once: what a merge key brings into several mappings stands in the text once."""
    unique = {(one.code, one.span, INDEX.sub("[]", one.message)): one for one in reversed(findings)}
    return tuple(sorted(unique.values(), key=lambda finding: finding.sort_key()))


def _without_secrets(finding: Finding, hidden: tuple[str, ...]) -> Finding:
    """A finding about syntax, which may quote what it stands at, without what is masked there."""
    return replace(
        finding,
        message=hide(finding.message, hidden),
        helps=tuple(hide(text, hidden) for text in finding.helps),
    )
