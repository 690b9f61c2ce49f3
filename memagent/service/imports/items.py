"""What readers give: memories as some other system held them, and what they left out; and picking one person's of many."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memagent.admission import normal_key
from memagent.errors import BadRequest
from memagent.lexicon import STOP_WORDS, fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

MAX_MEMORIES = 10_000
"""More than any list here holds; an import larger than this is a mistake."""

MAX_WORD_CHARS = 40

KEY_WORDS = 4
"""Words of a text that name it where its format has no key."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """One memory on its way in. `named` is false where the key was made here and may give way to one that is taken."""

    key: str
    value: str = field(repr=False)
    tags: tuple[str, ...] = ()
    trusted: bool = True
    named: bool = True


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One item, or several of a kind, that no memory could be made of. `key` is empty where it has no name."""

    key: str
    code: str
    why: str


@dataclass(slots=True)
class Found:
    items: list[Incoming] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


def key_of(text: str, *, under: str = "") -> str:
    """A key for a text without one: what it stands under, and its first words that mean something.

    Texts that have no letters a key can hold are named by their fingerprint.
    """
    words = [
        word[:MAX_WORD_CHARS] for word in normal_key(text).split("_") if word and word not in STOP_WORDS
    ][:KEY_WORDS]
    parts = [*filter(None, (normal_key(under),)), *words]
    return "_".join(parts) if words else "_".join([*parts, f"memory_{fingerprint(text)[:8]}"])


def rows_of(data: Any, *names: str) -> list[Any] | None:
    """The list that data is, or holds under one of these names; None when there is none."""
    if isinstance(data, dict):
        data = next((data[name] for name in names if isinstance(data.get(name), list)), None)
    return data if isinstance(data, list) else None


def like(data: Any, names: Sequence[str], fits: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Whether there are rows, and the first of them that is an object fits. No rows at all are anybody's."""
    rows = rows_of(data, *names)
    first = next((row for row in rows or () if isinstance(row, dict)), None)
    return first is not None and fits(first)


def of_one_person(
    rows: Iterable[Any], owner_of: Callable[[Mapping[str, Any]], str], wanted: str | None, found: Found
) -> list[Mapping[str, Any]]:
    """The rows of one person; what is no object, and who else is there, is counted in `found`, never named.

    Raises `BadRequest` when the rows are of several people and none of them was asked for.
    """
    people: dict[str, list[Mapping[str, Any]]] = {}
    for number, row in enumerate(rows):
        if isinstance(row, dict):
            people.setdefault(owner_of(row), []).append(row)
        else:
            found.left_out.append(LeftOut("", "not_a_memory", f"item {number} is no object"))
    owners = [owner for owner in people if owner]
    if wanted is None and len(owners) > 1:
        raise BadRequest(
            f"these are memories of {len(owners)} people: say whose with `--owner ID`, as the file names them"
        )
    chosen = wanted if wanted is not None else next(iter(owners), "")
    if wanted is not None and owners and wanted not in people:
        raise BadRequest(
            "the file has memories, and none of this owner: `--owner` is the id that the file uses"
        )
    others = sum(len(rows) for owner, rows in people.items() if owner not in {chosen, ""})
    if others:
        found.left_out.append(LeftOut("", "of_others", f"{others} memories of other people were left out"))
    return [row for owner, rows in people.items() if owner in {chosen, ""} for row in rows]


def counted(found: Found, why: Iterable[tuple[str, str]]) -> None:
    """Leave out many items for few reasons: one line per reason."""
    for (code, reason), count in Counter(why).items():
        found.left_out.append(LeftOut("", code, reason.format(count=count)))


def text_at(row: Mapping[str, Any], name: str) -> str:
    """A text, or nothing; MongoDB's extended JSON wraps an id in `$oid`."""
    value = row.get(name)
    if isinstance(value, dict):
        value = value.get("$oid")
    return value if isinstance(value, str) else ""
