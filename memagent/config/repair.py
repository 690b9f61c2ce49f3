"""Certain repairs, as replacements in the text: everything that is not wrong stays byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memagent.config.findings import Finding, Fix


def repaired(text: str, findings: Iterable[Finding]) -> tuple[str, int]:
    """The text with the findings' repairs made, and how many that were; of two that overlap, the first one."""
    fixes: list[Fix] = sorted(
        {finding.fix for finding in findings if finding.fix is not None},
        key=lambda fix: fix.span.start.offset,
    )
    parts: list[str] = []
    end = made = 0
    for fix in fixes:
        if fix.span.start.offset < end:
            continue
        parts += [text[end : fix.span.start.offset], fix.replacement]
        end = fix.span.end.offset
        made += 1
    return "".join([*parts, text[end:]]), made


def readable_elsewhere(text: str) -> bool:
    """Whether a YAML reader that is not ours takes the text, as the editors and tools around the file have to."""
    from ruamel.yaml import YAML  # noqa: PLC0415  only a repair asks for a second opinion
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    try:
        YAML(typ="rt").load(text)
    except (YAMLError, ValueError, RecursionError):
        return False
    return True
