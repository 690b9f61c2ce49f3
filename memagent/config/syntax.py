"""Syntax: what to tell a person about a text that cannot be read. One finding, at the place to look at first.

The reader knows where it stopped; people want to know what is wrong, which is often something that stands before that
place. So a fault is explained by its kind and by the text around it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memagent.config.findings import Finding, Label, Level, LibreChat

if TYPE_CHECKING:
    from memagent.config.cursor import Unreadable
    from memagent.config.nodes import Source

IGNORED_WHOLE: Final = (
    "LibreChat cannot read such a file: it logs one line and starts with its defaults, as if there were none"
)
RESERVED: Final = "@`%"
TEMPLATE = re.compile(r"\{\{|\{%")
KEY_WITHOUT_SPACE = re.compile(r"[A-Za-z_][\w.-]*:(?=[^\s/])")


@dataclass(frozen=True, slots=True)
class Explanation:
    """What to say. `label` is said of the fault's second place, `start` and `end` overrule its first."""

    code: str
    message: str
    helps: tuple[str, ...] = ()
    label: str = ""
    start: int | None = None
    end: int | None = None


SPOKEN: Final[dict[str, Explanation]] = {
    "tab": Explanation(
        "MEM007", "a tab is used for indentation", ("indent with spaces; YAML allows no tab in front of a key or an item",)
    ),
    "too-deep": Explanation("MEM004", "more than 100 levels of nesting"),
    "too-many-nodes": Explanation("MEM003", "more than 100,000 values in one file"),
    "alias-bomb": Explanation(
        "MEM005", "the alias `*{name}` makes the file expand beyond any use", ("write the values out, or alias less",)
    ),
    "recursive-alias": Explanation(
        "MEM005", "the alias `*{name}` stands inside of what it names", ("an alias may only follow its anchor",)
    ),
    "merge-bomb": Explanation("MEM005", "merge keys bring in more than js-yaml allows"),
    "unknown-tag": Explanation(
        "MEM010", "unknown tag `{name}`", ("remove the tag, or quote the value if it starts with `!`",)
    ),
    "wrong-tag": Explanation("MEM010", "the value is not what its tag `{name}` says"),
    "bad-tag": Explanation("MEM010", "malformed tag", ("quote the value if it starts with `!`",)),
    "unknown-alias": Explanation(
        "MEM011",
        "the alias `*{name}` names no anchor above it",
        ("quote the value if it starts with `*`", "an anchor is written `&{name}`"),
    ),
    "nameless-alias": Explanation("MEM009", "`{name}` cannot start a plain value", ("put the value in quotes",)),
    "alias-with-properties": Explanation("MEM001", "an alias cannot have an anchor or a tag"),
    "second-property": Explanation("MEM001", "a value cannot have two anchors or two tags"),
    "several-documents": Explanation(
        "MEM012", "more than one document in the file", ("keep one document; `---` may stand once, at the top",)
    ),
    "control-character": Explanation(
        "MEM013", "a control character stands in the text", ("remove it, or write it as an escape within double quotes",)
    ),
    "null-byte": Explanation("MEM013", "a NUL byte stands in the text", ("save the file as UTF-8 if it is another encoding; otherwise it is no text",)),
    "duplicate-key": Explanation(
        "MEM102", "duplicate key `{name}`", ("keep one of the two; put everything of `{name}` under it",), "first set here"
    ),
    "missing-comma": Explanation(
        "MEM001", "a comma is missing before this entry", label="the list or mapping opens here"
    ),
    "stray-comma": Explanation("MEM001", "a comma with nothing in front of it"),
    "missing-key": Explanation("MEM001", "a colon with no key in front of it"),
    "missing-colon": Explanation("MEM001", "a colon is missing after this key", ("a key is written `key: value`",)),
    "missing-space": Explanation("MEM001", "a space is missing after the colon", ("write `key: value`",)),
    "line-break-expected": Explanation(
        "MEM001", "text behind `|` or `>`", ("start the text on the next line, indented",)
    ),
    "block-scalar-header": Explanation("MEM001", "malformed header of a block of text"),
    "block-scalar-indent": Explanation("MEM001", "the text below `|` or `>` is not indented"),
    "bad-escape": Explanation(
        "MEM001",
        "unknown escape within double quotes",
        ("double the backslash, or use single quotes, in which it means itself",),
    ),
    "nested-list-key": Explanation("MEM001", "a list of lists cannot be a key"),
    "bad-merge": Explanation("MEM001", "`<<` wants a mapping or a list of mappings", ("alias one: `<<: *name`",)),
    "bad-directive": Explanation("MEM001", "malformed directive", ("remove the line",)),
    "directive-end": Explanation("MEM001", "no `---` behind the directives"),
    "unclosed-bracket": Explanation("MEM001", "this `{name}` is never closed"),
    "unclosed-quote": Explanation(
        "MEM008", "this quote is never closed", ("close it with {name}, or remove it; within single quotes write '' for '",)
    ),
}  # fmt: skip


def explain(fault: Unreadable, source: Source, file: str) -> Finding:
    """The one finding for a text that cannot be read."""
    said = (
        _template(fault, source.text)
        or _layout(fault, source)
        or SPOKEN.get(fault.kind)
        or Explanation("MEM001", "this is not YAML")
    )
    start = fault.start if said.start is None else said.start
    end = max(start + 1, fault.end if said.end is None else said.end)
    labels = (Label(source.span(*fault.first), said.label),) if said.label and fault.first else ()
    reads = said.code in ("MEM003", "MEM005") and fault.kind != "merge-bomb"
    return Finding(
        file=file,
        code=said.code,
        level=Level.ERROR,
        message=said.message.format(name=fault.name),
        librechat=LibreChat.ACCEPTS if reads else LibreChat.REJECTS,
        span=source.span(start, end),
        labels=labels,
        helps=tuple(text.format(name=fault.name) for text in said.helps),
        notes=() if reads else (IGNORED_WHOLE,),
    )


def _line(text: str, pos: int) -> tuple[int, int]:
    """Where the line of `pos` starts and ends."""
    start = max(text.rfind("\n", 0, pos), text.rfind("\r", 0, pos)) + 1
    ends = [at for at in (text.find("\n", pos), text.find("\r", pos)) if at >= 0]
    return start, min(ends, default=len(text))


def _template(fault: Unreadable, text: str) -> Explanation | None:
    """Remnants of a template language on the line where reading stopped."""
    if fault.kind in ("duplicate-key", "too-deep", "unknown-alias"):
        return None
    start, end = _line(text, fault.start)
    found = TEMPLATE.search(text, start, end)
    if found is None:
        return None
    close = max(text.find("}}", found.start(), end), text.find("%}", found.start(), end))
    return Explanation(
        "MEM014",
        "a template that was not rendered",
        ("render the file first (Helm, Jinja, Ansible), or put the value in quotes if the braces are meant",),
        start=found.start(),
        end=close + 2 if close >= 0 else end,
    )


def _colon(text: str, start: int, pos: int) -> Explanation:
    """Why a `: ` at `pos`, on the line that begins at `start`, is one too many."""
    if re.search(r":[ \t]", text[start:pos]):
        helps = ("put the value in quotes if it holds `: `, or start a new line",)
        return Explanation("MEM001", "a second `: ` on one line", helps, end=pos + 1)
    above = text[:start].rstrip()
    above_start, _ = _line(text, len(above))
    glued = KEY_WITHOUT_SPACE.match(
        text, above_start + len(above[above_start:]) - len(above[above_start:].lstrip(" -"))
    )
    if glued is not None:
        return _glued(glued)
    indent = len(text[start:pos]) - len(text[start:pos].lstrip())
    return Explanation(
        "MEM001",
        "this line continues the value above it, and a value cannot hold `: `",
        ("align the key with the keys that it belongs to, or put the whole value in quotes",),
        start=start + indent,
        end=pos + 1,
    )


def _glued(match: re.Match[str]) -> Explanation:
    helps = ("write `key: value`",)
    return Explanation(
        "MEM001", "a space is missing after the colon", helps, start=match.end() - 1, end=match.end()
    )


def _layout(fault: Unreadable, source: Source) -> Explanation | None:  # noqa: PLR0911 - one for each cause
    """What is wrong where a node should start or end and something else stands."""
    text, pos = source.text, fault.start
    if fault.kind == "missing-colon":
        glued = KEY_WITHOUT_SPACE.match(text, pos)
        return _glued(glued) if glued is not None else None
    if fault.kind not in (
        "bad-indentation",
        "bad-item",
        "end-expected",
        "missing-comma",
        "reserved-character",
    ):
        return None
    start, end = _line(text, pos)
    char, before = text[pos : pos + 1], text[start:pos].strip()
    if char and char in RESERVED:
        return Explanation(
            "MEM009", f"`{char}` cannot start a plain value", ("put the value in quotes",), end=pos + 1
        )
    if fault.kind == "missing-comma":
        return None
    if char == ":" and before:
        return _colon(text, start, pos)
    if before and before != "-":
        return _trailing(text, pos, end)
    label = ""
    if fault.first is not None:
        label = f"the last open level starts here, at column {source.position(fault.first[0]).column}"
    said = f"bad indentation: nothing open starts at column {source.position(pos).column}"
    return Explanation("MEM001", said, ("align it with the lines that it belongs to",), label, end=end)


def _trailing(text: str, pos: int, end: int) -> Explanation:
    """Text behind a value that ended before."""
    if text[:pos].rstrip(" \t")[-1:] in ("'", '"'):
        hint = "within single quotes write '' for ', within double quotes \\\" for \""
        return Explanation("MEM001", "text behind the closing quote", (hint,), end=end)
    return Explanation(
        "MEM001", "text behind the end of the value", ("put the whole value in quotes",), end=end
    )
