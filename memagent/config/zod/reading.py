"""Reading: the issues of one run, and JavaScript's view of values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from memagent.config.scalars import Date, is_nan

if TYPE_CHECKING:
    from collections.abc import Mapping

Path: TypeAlias = "tuple[str | int, ...]"
Problem: TypeAlias = "tuple[Path, str]"
"""Where below the value a rule is broken, and how."""


class Absence:
    """A value that is none."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


UNDEFINED: Final = Absence("UNDEFINED")
INVALID: Final = Absence("INVALID")

SPACES: Final = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What JavaScript's `trim` takes away and its `\\s` matches."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue as zod reports it. `options` are the issues of each option where no option of a union fits."""

    path: Path
    code: str
    message: str
    options: tuple[tuple[Issue, ...], ...] = ()


class Crash(Exception):
    """The schema itself throws."""


@dataclass(slots=True)
class Run:
    """One reading: the issues so far, and what the schema knows besides the value."""

    environ: Mapping[str, str]
    max_subagents: int = 10
    issues: list[Issue] = field(default_factory=list)

    def add(self, path: Path, code: str, message: str) -> Any:
        self.issues.append(Issue(path, code, message))
        return INVALID

    def wrong_type(self, expected: str, value: Any, path: Path) -> Any:
        received = type_name(value)
        return self.add(
            path,
            "invalid_type",
            "Required" if value is UNDEFINED else f"Expected {expected}, received {received}",
        )


MAX_INDEX: Final = 2**32 - 2
MAX_INDEX_DIGITS: Final = 10
"""The largest name that JavaScript takes for a position in an array, and its length."""

TYPE_NAMES: Final[dict[type, str]] = {
    str: "string", bool: "boolean", int: "number", float: "number", dict: "object", list: "array",
    type(None): "null", Date: "date", bytes: "object",
}  # fmt: skip


def type_name(value: Any) -> str:
    """Zod's name for the type of a value."""
    if value is UNDEFINED:
        return "undefined"
    return "nan" if is_nan(value) else TYPE_NAMES[type(value)]


def length(text: str) -> int:
    """The length of a text as JavaScript counts it, in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def property_names(mapping: dict[str, Any]) -> list[str]:
    """The keys of an object in JavaScript's order: whole numbers first, rising, then the others as they were written."""
    names = list(mapping)
    numbers = [name for name in names if name[:1].isdigit() and _is_index(name)]
    if not numbers:
        return names
    taken = set(numbers)
    return sorted(numbers, key=int) + [name for name in names if name not in taken]


def _is_index(name: str) -> bool:
    return (
        name.isascii()
        and name.isdigit()
        and len(name) <= MAX_INDEX_DIGITS
        and str(int(name)) == name
        and int(name) <= MAX_INDEX
    )


def listed(values: tuple[str | int, ...], between: str = " | ") -> str:
    return between.join(f"'{value}'" if isinstance(value, str) else str(value) for value in values)
