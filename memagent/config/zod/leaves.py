"""Schemas of single values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from memagent.config.scalars import is_nan, text_of
from memagent.config.zod.reading import SPACES, UNDEFINED, Path, Run, length, listed, type_name

if TYPE_CHECKING:
    from collections.abc import Callable


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
        if type(value) not in (int, float) or is_nan(value):
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

    def read(self, value: Any, path: Path, run: Run) -> Any:  # noqa: ARG002 - the shape of all schemas
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
            return run.wrong_type(listed(self.values), value, path)
        if value in self.values:
            return value
        said = f"Invalid enum value. Expected {listed(self.values)}, received '{text_of(value)}'"
        return run.add(path, "invalid_enum_value", said)


TEXT: Final = Text()
FLAG: Final = _Kind("boolean", bool)
NUMBER: Final = Number()
NULL: Final = _Kind("null", type(None))
ABSENT: Final = _Kind("undefined", None)
ANYTHING: Final = Anything()
