"""zod 3.25 in small: what a schema makes of a value, with the issues, their order and their words exactly as zod has them.

A schema reads a value and gives back what zod would: a clean value, a *dirty* one (read to the end, but with issues), or
`INVALID` (aborted: what is around it is aborted too, and no rule on it runs). A value is dirty when reading it added
issues; nothing else marks it (spec/librechat.md §2.3).

Values are what `memagent.config.document.plain` gives; `UNDEFINED` is a key that is not there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from memagent.config.scalars import Date, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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


class Crash(Exception):  # noqa: N818 - it says what LibreChat does, and never leaves this package
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


TYPE_NAMES: Final[dict[type, str]] = {
    str: "string", bool: "boolean", int: "number", float: "number", dict: "object", list: "array",
    type(None): "null", Date: "date", bytes: "object",
}  # fmt: skip


def type_name(value: Any) -> str:
    """zod's name for the type of a value."""
    if value is UNDEFINED:
        return "undefined"
    return "nan" if value != value else TYPE_NAMES[type(value)]  # noqa: PLR0124 - NaN differs from itself


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
        and len(name) < 11
        and str(int(name)) == name
        and int(name) < 2**32 - 1
    )  # noqa: PLR2004 - array indices


def _listed(values: tuple[str | int, ...], between: str = " | ") -> str:
    return between.join(f"'{value}'" if isinstance(value, str) else str(value) for value in values)


class Schema:
    """How to read one value. `quick` is a type of which every value is clean as it is, if there is one."""

    __slots__ = ()
    quick: type | None = None

    def read(self, value: Any, path: Path, run: Run) -> Any:
        """The value that zod gives back, or `INVALID`; issues go to `run`."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class Text(Schema):
    """A string. Checks run in the order of the fields."""

    trim: bool = False
    min: int | None = None
    max: int | None = None
    url: Callable[[str], bool] | None = None
    pattern: str | Callable[[str], object] | None = None
    message: str = "Invalid"
    quick: type | None = None

    def __post_init__(self) -> None:
        self.quick = None if self.trim or self.min or self.max or self.url or self.pattern else str

    def read(self, value: Any, path: Path, run: Run) -> Any:
        if type(value) is not str:
            return run.wrong_type("string", value, path)
        text: str = value.strip(SPACES) if self.trim else value
        if self.min is not None and length(text) < self.min:
            run.add(path, "too_small", f"String must contain at least {self.min} character(s)")
        if self.max is not None and length(text) > self.max:
            run.add(path, "too_big", f"String must contain at most {self.max} character(s)")
        if self.url is not None and not self.url(text):
            run.add(path, "invalid_string", "Invalid url")
        if self.pattern is not None:
            matches = self.pattern(text) if callable(self.pattern) else re.match(self.pattern, text)
            if not matches:
                run.add(path, "invalid_string", self.message)
        return text


@dataclass(slots=True, eq=False)
class Number(Schema):
    """A number. Checks run in the order of the fields."""

    finite: bool = False
    int: bool = False
    min: float | None = None
    above: float | None = None
    max: float | None = None
    quick: type | None = None

    def __post_init__(self) -> None:
        bounds = (self.min, self.above, self.max)
        self.quick = int if bounds == (None, None, None) else None

    def read(self, value: Any, path: Path, run: Run) -> Any:
        if type(value) not in (int, float) or value != value:  # noqa: PLR0124 - NaN differs from itself
            return run.wrong_type("number", value, path)
        if self.finite and value in (float("inf"), float("-inf")):
            run.add(path, "not_finite", "Number must be finite")
        if self.int and type(value) is float and not value.is_integer():
            run.add(path, "invalid_type", "Expected integer, received float")
        if self.min is not None and value < self.min:
            run.add(path, "too_small", f"Number must be greater than or equal to {text_of(self.min)}")
        if self.above is not None and value <= self.above:
            run.add(path, "too_small", f"Number must be greater than {text_of(self.above)}")
        if self.max is not None and value > self.max:
            run.add(path, "too_big", f"Number must be less than or equal to {text_of(self.max)}")
        return value


class _Kind(Schema):
    """A type without further checks."""

    __slots__ = ("name", "quick")

    def __init__(self, name: str, quick: type | None) -> None:
        self.name = name
        self.quick = quick

    def read(self, value: Any, path: Path, run: Run) -> Any:
        if value is UNDEFINED if self.quick is None else type(value) is self.quick:
            return value
        return run.wrong_type(self.name, value, path)


class Anything(Schema):
    __slots__ = ()

    def read(self, value: Any, path: Path, run: Run) -> Any:
        return value


@dataclass(slots=True, eq=False)
class Literal(Schema):
    value: str

    def read(self, value: Any, path: Path, run: Run) -> Any:
        if type(value) is str and value == self.value:
            return value
        return run.add(path, "invalid_literal", f'Invalid literal value, expected "{self.value}"')


class Choice(Schema):
    """One of some words; `native` takes a number for a word that is not among them, as TypeScript's enums do."""

    __slots__ = ("native", "values")

    def __init__(self, *values: str | int, native: bool = False) -> None:
        self.values = values
        self.native = native

    def read(self, value: Any, path: Path, run: Run) -> Any:
        kind = type_name(value)
        if kind != "string" and not (self.native and kind == "number"):
            return run.wrong_type(_listed(self.values), value, path)
        if value in self.values:
            return value
        said = f"Invalid enum value. Expected {_listed(self.values)}, received '{text_of(value)}'"
        return run.add(path, "invalid_enum_value", said)


class List(Schema):
    __slots__ = ("item", "max", "min")

    def __init__(self, item: Schema, *, min: int | None = None, max: int | None = None) -> None:  # noqa: A002 - zod's names
        self.item = item
        self.min = min
        self.max = max

    def read(self, value: Any, path: Path, run: Run) -> Any:
        if type(value) is not list:
            return run.wrong_type("array", value, path)
        if self.min is not None and len(value) < self.min:
            run.add(path, "too_small", f"Array must contain at least {self.min} element(s)")
        if self.max is not None and len(value) > self.max:
            run.add(path, "too_big", f"Array must contain at most {self.max} element(s)")
        item, quick = self.item, self.item.quick
        out = [
            one if type(one) is quick else item.read(one, (*path, index), run)
            for index, one in enumerate(value)
        ]
        return INVALID if INVALID in out else out


class Needed(Schema):
    """A field that may not be absent."""

    __slots__ = ("inner", "quick")

    def __init__(self, inner: Schema) -> None:
        self.inner = inner
        self.quick = inner.quick

    def read(self, value: Any, path: Path, run: Run) -> Any:
        return self.inner.read(value, path, run)


class Object(Schema):
    """A mapping with known keys, which may be absent unless they are `Needed`. Unknown keys are dropped."""

    __slots__ = ("fields", "rows")
    strict = False

    def __init__(self, **fields: Schema) -> None:
        self.fields = fields
        self.rows = [
            (name, schema, schema.quick, not isinstance(schema, Needed | Default))
            for name, schema in fields.items()
        ]

    def read(self, value: Any, path: Path, run: Run) -> Any:
        if type(value) is not dict:
            if type(value) is not bytes:
                return run.wrong_type("object", value, path)
            value = {str(index): byte for index, byte in enumerate(value)}
        out: dict[str, Any] = {}
        aborted = False
        for name, schema, quick, optional in self.rows:
            item = value.get(name, UNDEFINED)
            if type(item) is quick:
                out[name] = item
                continue
            if item is UNDEFINED and optional:
                continue
            item = schema.read(item, (*path, name), run)
            if item is INVALID:
                aborted = True
            elif item is not UNDEFINED or name in value:
                out[name] = item
        if self.strict:
            unknown = [name for name in property_names(value) if name not in self.fields]
            if unknown:
                said = f"Unrecognized key(s) in object: {_listed(tuple(unknown), ', ')}"
                run.add(path, "unrecognized_keys", said)
        return INVALID if aborted else out


class Strict(Object):
    """An `Object` that refuses unknown keys."""

    __slots__ = ()
    strict = True


class Record(Schema):
    """A mapping with any keys and one kind of value."""

    __slots__ = ("value",)

    def __init__(self, value: Schema) -> None:
        self.value = value

    def read(self, value: Any, path: Path, run: Run) -> Any:
        if type(value) is not dict:
            if type(value) is not bytes:
                return run.wrong_type("object", value, path)
            value = {str(index): byte for index, byte in enumerate(value)}
        schema, quick = self.value, self.value.quick
        out: dict[str, Any] = {}
        aborted = False
        for name in property_names(value):
            item = value[name]
            if type(item) is not quick:
                item = schema.read(item, (*path, name), run)
            if item is INVALID:
                aborted = True
            else:
                out[name] = item
        return INVALID if aborted else out


class Union(Schema):
    """The first option that is clean; else the first that is dirty, with its issues; else one issue for all."""

    __slots__ = ("options",)

    def __init__(self, *options: Schema) -> None:
        self.options = options

    def read(self, value: Any, path: Path, run: Run) -> Any:
        issues = run.issues
        start = len(issues)
        dirty: tuple[Any, list[Issue]] | None = None
        failed: list[tuple[Issue, ...]] = []
        for option in self.options:
            out = option.read(value, path, run)
            if len(issues) == start:
                return out
            added = issues[start:]
            del issues[start:]
            failed.append(tuple(added))
            if out is not INVALID and dirty is None:
                dirty = (out, added)
        if dirty is not None:
            issues += dirty[1]
            return dirty[0]
        issues.append(Issue(path, "invalid_union", "Invalid input", tuple(failed)))
        return INVALID


class Tagged(Schema):
    """The option whose `tag` field says so."""

    __slots__ = ("options", "tag")

    def __init__(self, tag: str, options: Mapping[str, Schema]) -> None:
        self.tag = tag
        self.options = options

    def read(self, value: Any, path: Path, run: Run) -> Any:
        if type(value) not in (dict, bytes):
            return run.wrong_type("object", value, path)
        kind = value.get(self.tag) if type(value) is dict else None
        option = self.options.get(kind) if isinstance(kind, str) else None
        if option is None:
            said = f"Invalid discriminator value. Expected {_listed(tuple(self.options))}"
            return run.add((*path, self.tag), "invalid_union_discriminator", said)
        return option.read(value, path, run)


class Both(Schema):
    """Two objects that share no key, side by side in one mapping."""

    __slots__ = ("left", "right")

    def __init__(self, left: Schema, right: Schema) -> None:
        self.left = left
        self.right = right

    def read(self, value: Any, path: Path, run: Run) -> Any:
        left, right = self.left.read(value, path, run), self.right.read(value, path, run)
        return INVALID if INVALID in (left, right) else left | right


class Nullable(Schema):
    """May be null."""

    __slots__ = ("inner",)

    def __init__(self, inner: Schema) -> None:
        self.inner = inner

    def read(self, value: Any, path: Path, run: Run) -> Any:
        return None if value is None else self.inner.read(value, path, run)


class Default(Schema):
    """Stands for something where it is absent."""

    __slots__ = ("inner", "quick", "value")

    def __init__(self, inner: Schema, value: Any) -> None:
        self.inner = inner
        self.value = value
        self.quick = inner.quick

    def read(self, value: Any, path: Path, run: Run) -> Any:
        return self.value if value is UNDEFINED else self.inner.read(value, path, run)


class Refined(Schema):
    """A value with rules, which see what was read and run unless it is invalid."""

    __slots__ = ("inner", "rules")

    def __init__(self, inner: Schema, *rules: Callable[[Any, Run], Iterable[Problem]]) -> None:
        self.inner = inner
        self.rules = rules

    def read(self, value: Any, path: Path, run: Run) -> Any:
        out = self.inner.read(value, path, run)
        if out is INVALID:
            return INVALID
        for rule in self.rules:
            for below, message in rule(out, run):
                run.add((*path, *below), "custom", message)
        return out


class Transformed(Schema):
    """A value that becomes another one; a dirty one is dropped."""

    __slots__ = ("change", "inner")

    def __init__(self, inner: Schema, change: Callable[[Any, Run], Any]) -> None:
        self.inner = inner
        self.change = change

    def read(self, value: Any, path: Path, run: Run) -> Any:
        before = len(run.issues)
        out = self.inner.read(value, path, run)
        return INVALID if out is INVALID or len(run.issues) > before else self.change(out, run)


class Piped(Schema):
    """What comes out of one schema goes into another, unless it is dirty."""

    __slots__ = ("inner", "outer")

    def __init__(self, inner: Schema, outer: Schema) -> None:
        self.inner = inner
        self.outer = outer

    def read(self, value: Any, path: Path, run: Run) -> Any:
        before = len(run.issues)
        out = self.inner.read(value, path, run)
        return out if out is INVALID or len(run.issues) > before else self.outer.read(out, path, run)


class Lazy(Schema):
    """A schema that holds itself."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Schema]) -> None:
        self.make = make

    def read(self, value: Any, path: Path, run: Run) -> Any:
        return self.make().read(value, path, run)


def rule(
    holds: Callable[[Any], object], message: str, *below: str | int
) -> Callable[[Any, Run], Iterable[Problem]]:
    """A rule for `Refined` from a predicate."""
    problems = ((below, message),)
    return lambda value, _run: () if holds(value) else problems


TEXT: Final = Text()
FLAG: Final = _Kind("boolean", bool)
NUMBER: Final = Number()
NULL: Final = _Kind("null", type(None))
ABSENT: Final = _Kind("undefined", None)
ANYTHING: Final = Anything()
TEXTS: Final = List(TEXT)
HEADERS: Final = Record(TEXT)
