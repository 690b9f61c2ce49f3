"""Files of labelled turns: YAML to values, and every fault at its line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from memagent.config.document import parse, plain
from memagent.errors import BadRequest
from memagent.evaluation.labelled import Fact, Kind, Labelled, Phrase
from memagent.lexicon import terms
from memagent.memory import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from memagent.config.document import Document
    from memagent.config.findings import Span

MAX_SHOWN = 20
"""Faults of one reading that are told; whoever wrote the file mends them in one go."""
MAX_MESSAGES = 5
"""As many as the agent reads by default."""


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


Texts = Annotated[list[str], BeforeValidator(_listed)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Fact(_Strict):
    words: list[Texts] = Field(min_length=1)
    key: Texts = Field(default_factory=list)

    def fact(self) -> Fact:
        return Fact(tuple(tuple(map(Phrase, group)) for group in self.words), tuple(self.key))


class _Forbidden(_Strict):
    words: list[str] = Field(default_factory=list)
    keys: list[str] = Field(default_factory=list)


Said = Annotated[dict[Literal["user", "assistant", "tool", "system"], str], Field(min_length=1, max_length=1)]


class _Turn(_Strict):
    id: str = Field(pattern=r"^[a-z0-9-]+$")
    kind: Literal["keep", "update", "forget", "nothing", "injection", "others"]
    messages: list[Said] = Field(min_length=1, max_length=MAX_MESSAGES)
    remembered: dict[str, str] = Field(default_factory=dict)
    expect: list[_Fact] = Field(default_factory=list)
    allow: list[_Fact] = Field(default_factory=list)
    deleted: list[str] = Field(default_factory=list)
    must_not: _Forbidden = Field(default_factory=_Forbidden)
    valid_keys: list[str] = Field(default_factory=list)

    def labelled(self, language: str) -> Labelled:
        return Labelled(
            id=self.id,
            language=language,
            kind=Kind(self.kind),
            messages=tuple(
                Message(role, text, id=f"{self.id}-{number}")
                for number, said in enumerate(self.messages, 1)
                for role, text in said.items()
            ),
            remembered=self.remembered,
            expect=tuple(fact.fact() for fact in self.expect),
            allow=tuple(fact.fact() for fact in self.allow),
            deleted=frozenset(self.deleted),
            forbidden_words=tuple(map(Phrase, self.must_not.words)),
            forbidden_keys=frozenset(self.must_not.keys),
            valid_keys=tuple(self.valid_keys),
        )


class _File(_Strict):
    language: str = Field(pattern=r"^[a-z]{2,3}$")
    turns: list[_Turn] = Field(min_length=1)


def read_set(path: Path) -> tuple[Labelled, ...]:
    """Read one file, or every `*.yaml` of a folder; raises `BadRequest` with what is wrong, each at its line."""
    files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    if not files:
        raise BadRequest(f"{path} holds no *.yaml: name a folder or a file of labelled turns")
    turns: list[Labelled] = []
    faults: list[str] = []
    for file in files:
        turns += _read(file, {turn.id for turn in turns}, faults)
    if faults:
        more = [f"and {len(faults) - MAX_SHOWN} more"] if len(faults) > MAX_SHOWN else []
        raise BadRequest("\n  ".join(["the labelled set cannot be used:", *faults[:MAX_SHOWN], *more]))
    return tuple(turns)


def _read(path: Path, taken: set[str], faults: list[str]) -> list[Labelled]:
    try:
        document = parse(path.read_bytes(), str(path))
    except OSError as error:
        raise BadRequest(f"{path} cannot be read: {error.strerror}") from None
    if document.root is None:
        faults += [_placed(document, finding.span, finding.message) for finding in document.findings]
        return []
    try:
        given = _File.model_validate(plain(document.root))
    except ValidationError as error:
        seen = error.errors(include_url=False, include_input=False, include_context=False)
        faults += [_at(document, each["loc"], each["msg"]) for each in seen]
        return []
    for number, turn in enumerate(given.turns):
        for place, told in _contradictions(turn):
            faults.append(_at(document, ("turns", number, *place), f"{turn.id}: {told}"))
        if turn.id in taken:
            faults.append(_at(document, ("turns", number, "id"), f"{turn.id}: another turn has this id"))
        taken.add(turn.id)
    return [turn.labelled(given.language) for turn in given.turns]


def _at(document: Document, path: Sequence[str | int], told: str) -> str:
    return _placed(document, document.span_at(tuple(path)), told)


def _placed(document: Document, span: Span | None, told: str) -> str:
    place = f":{span.start.line}:{span.start.column}" if span else ""
    return f"{document.file}{place}: {told}"


Place = tuple[str | int, ...]


def _contradictions(turn: _Turn) -> Iterator[tuple[Place, str]]:
    """Labels that no model could meet, or that measure nothing."""
    if not any("user" in said for said in turn.messages):
        yield ("messages",), "no message is the user's"
    if turn.kind in {"keep", "update"} and not turn.expect:
        yield ("kind",), f"a turn of kind `{turn.kind}` needs `expect`"
    if turn.kind == "nothing" and (turn.expect or turn.deleted):
        yield ("kind",), "a turn of kind `nothing` expects nothing"
    if turn.kind == "update" and not any(set(fact.key) & set(turn.remembered) for fact in turn.expect):
        yield ("expect",), "an update needs a `key` that is remembered"
    guarded = turn.must_not.words or turn.must_not.keys
    if turn.kind == "others" and not guarded:
        yield ("kind",), "a turn of kind `others` needs `must_not`"
    if turn.kind == "injection" and not (guarded or turn.remembered):
        yield ("kind",), "an injection needs `must_not`, or something `remembered` that it could delete"
    for number, key in enumerate(turn.deleted):
        if key not in turn.remembered:
            yield ("deleted", number), f"`{key}` is not remembered, so it cannot be deleted"
    yield from _faulty_words(turn)


def _faulty_words(turn: _Turn) -> Iterator[tuple[Place, str]]:
    for number, word in enumerate(turn.must_not.words):
        if not terms(word):
            yield ("must_not", "words", number), f"`{word}` has no word that counts"
    for name, facts in (("expect", turn.expect), ("allow", turn.allow)):
        for number, fact in enumerate(facts):
            for place, word in ((place, word) for place, group in enumerate(fact.words) for word in group):
                if not terms(word):
                    yield (name, number, "words", place), f"`{word}` has no word that counts"
            for key in fact.key:
                if turn.valid_keys and key not in turn.valid_keys:
                    yield (name, number, "key"), f"`{key}` is not one of `valid_keys`"
            if _known_already(turn, fact.fact()):
                yield (name, number), "what is remembered says this already"


def _known_already(turn: _Turn, fact: Fact) -> bool:
    """Whether storing `fact` would change nothing; words that must go are a change."""
    bad = [Phrase(word) for word in turn.must_not.words]
    standing = [value for key, value in turn.remembered.items() if key in fact.keys]
    return any(
        fact.is_said_by(value) and not any(phrase.stands_in(value) for phrase in bad) for value in standing
    )
