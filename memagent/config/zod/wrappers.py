"""Schemas around another one: what may be absent or null, rules, changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memagent.config.zod.leaves import FLAG, Schema
from memagent.config.zod.reading import INVALID, UNDEFINED, Path, Problem, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Needed(Schema):
    """A field that may not be absent."""

    __slots__ = ("inner", "quick")

    def __init__(self, inner: Schema) -> None:
        self.inner = inner
        self.quick = inner.quick

    def read(self, value: Any, path: Path, run: Run) -> Any:
        return self.inner.read(value, path, run)


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


OFF: Final = Default(FLAG, value=False)
ON: Final = Default(FLAG, value=True)
