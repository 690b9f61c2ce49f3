"""Recorded answers: which one is played for a request, and how a file of them reads.

`llm.scripted` plays them, over HTTP or in process.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memagent.config.document import parse, plain
from memagent.errors import BadRequest
from memagent.llm import Usage
from memagent.memory import ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Answer:
    """One recorded answer, or one recorded failure.

    `status` other than 200 is an error of the endpoint, `body` is sent as it is in place of an answer, `drop` closes the
    connection without a word, `location` goes with a redirect, `delay_s` comes before any of these. `usage` None is
    counted from the texts.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    finish_reason: str = ""
    status: int = 200
    body: str | None = None
    drop: bool = False
    location: str = ""
    delay_s: float = 0.0

    @property
    def ending(self) -> str:
        return self.finish_reason or ("tool_calls" if self.calls else "stop")


def calling(name: str, /, **arguments: Any) -> Answer:
    """Make an answer that calls one tool."""
    return Answer(calls=(call(name, **arguments),))


def call(name: str, /, **arguments: Any) -> ToolCall:
    return ToolCall("", name, json.dumps(arguments, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class Rule:
    """When to play `answers`: one after another, the last one again and again, at most `times` in all.

    `user` are words of the last user message, in any case; `tools` asks that the request offers tools, or that it does
    not. Without conditions a rule fits every request.
    """

    answers: tuple[Answer, ...]
    user: str = ""
    tools: bool | None = None
    times: int | None = None


class Script:
    """Rules and how often each has been played; safe to share between threads.

    Of the rules that fit, the one whose words stand nearest to the end of the message is played, the earlier one in a
    tie: a window holds old messages too, and the newest is meant. When none fits the answer is empty.
    """

    def __init__(self, rules: Sequence[Rule], *, model: str = "scripted") -> None:
        self.model = model
        self._rules = tuple(rules)
        self._played = [0] * len(self._rules)
        self._lock = threading.Lock()

    @classmethod
    def of(cls, *answers: Answer) -> Script:
        """Play answers in order, whatever is asked; empty answers after the last."""
        return cls([Rule(answers, times=len(answers))])

    @classmethod
    def from_yaml(cls, path: Path) -> Script:
        """Read a file of recorded answers; raises `BadRequest` that names the place of a fault."""
        document = parse(path.read_bytes(), str(path))
        if document.root is None:
            raise BadRequest(f"{path}: {'; '.join(finding.message for finding in document.findings)}")
        return cls.from_data(plain(document.root), file=str(path))

    @classmethod
    def from_data(cls, data: Any, *, file: str = "the script") -> Script:
        """Read what such a file holds; raises `BadRequest` that names the place of a fault."""
        try:
            return _File.model_validate(data).script()
        except ValidationError as error:
            seen = error.errors(include_url=False, include_input=False, include_context=False)
            faults = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in seen)
            raise BadRequest(f"{file}: {faults}") from None

    def play(self, user: str, *, offers_tools: bool) -> Answer:
        """Return the answer to a request with this last user message, and count it as played."""
        message = user.casefold()
        with self._lock:
            fitting = [
                (message.rfind(rule.user.casefold()) if rule.user else -1, -number)
                for number, rule in enumerate(self._rules)
                if self._fits(number, message, offers_tools=offers_tools)
            ]
            if not fitting:
                return Answer()
            number = -max(fitting)[1]
            answers = self._rules[number].answers
            answer = answers[min(self._played[number], len(answers) - 1)]
            self._played[number] += 1
            return answer

    def _fits(self, number: int, message: str, *, offers_tools: bool) -> bool:
        rule = self._rules[number]
        return (
            (rule.times is None or self._played[number] < rule.times)
            and rule.tools in {None, offers_tools}
            and rule.user.casefold() in message
            and bool(rule.answers)
        )


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Usage(_Strict):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0


class _Answer(_Strict):
    text: str = ""
    calls: list[dict[str, dict[str, Any]]] = Field(default_factory=list)
    """`- set_memory: {key: ..., value: ...}`"""
    usage: _Usage | None = None
    finish_reason: str = ""
    status: int = 200
    body: str | None = None
    drop: bool = False
    location: str = ""
    delay_s: float = Field(0.0, ge=0)

    def answer(self) -> Answer:
        calls = tuple(call(name, **given) for each in self.calls for name, given in each.items())
        usage = Usage(**self.usage.model_dump()) if self.usage else None
        rest = self.model_dump(exclude={"calls", "usage"})
        return Answer(calls=calls, usage=usage, **rest)


class _Rule(_Strict):
    answers: list[_Answer] = Field(min_length=1)
    user: str = ""
    tools: bool | None = None
    times: int | None = Field(None, ge=1)


class _File(_Strict):
    model: str = "scripted"
    rules: list[_Rule]

    def script(self) -> Script:
        rules = [
            Rule(tuple(answer.answer() for answer in rule.answers), rule.user, rule.tools, rule.times)
            for rule in self.rules
        ]
        return Script(rules, model=self.model)
