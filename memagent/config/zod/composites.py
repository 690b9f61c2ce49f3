"""Schemas of what holds values: lists, objects, records, and choices among schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memagent.config.zod.leaves import TEXT, Schema
from memagent.config.zod.reading import INVALID, UNDEFINED, Issue, Path, Run, listed, property_names
from memagent.config.zod.wrappers import Default, Needed

if TYPE_CHECKING:
    from collections.abc import Mapping


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
                said = f"Unrecognized key(s) in object: {listed(tuple(unknown), ', ')}"
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
            said = f"Invalid discriminator value. Expected {listed(tuple(self.options))}"
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


TEXTS: Final = List(TEXT)
HEADERS: Final = Record(TEXT)
