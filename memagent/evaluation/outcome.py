"""What a model did with one labelled turn, and the file that keeps it so that an evaluation can go on later."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from memagent.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """Memories after the turn, and what they cost. It holds no judgement: labels can be mended without asking again.

    `asked` is the same for the same question to the same model. `fault` is the code of what kept the model from
    answering, empty when it answered; then `after` says nothing. `usd` is None when the price is unknown.
    """

    turn: str
    asked: str
    after: Mapping[str, str] = field(default_factory=dict)
    untrusted: tuple[str, ...] = ()
    """Keys that memagent keeps from every prompt until the user accepts them."""
    stopped: str = ""
    fault: str = ""
    told: str = ""
    calls: int = 0
    refused_calls: int = 0
    input_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    ms: float = 0.0


class Results:
    """Outcomes in a JSON Lines file, or in memory only without one. One process writes a file at a time."""

    def __init__(self, path: Path | None = None) -> None:
        """Take up what is there; raises `BadRequest` for a file that is something else or cannot be written."""
        self._path = path
        self._known: dict[tuple[str, str], Outcome] = {}
        if path is not None:
            try:
                path.touch()
                self._known = {(each.turn, each.asked): each for each in _read(path)}
            except OSError as error:
                raise _unusable(path, error) from None

    def get(self, turn: str, asked: str) -> Outcome | None:
        """The answer to this question, if there was one; a fault is asked again."""
        found = self._known.get((turn, asked))
        return None if found is None or found.fault else found

    def add(self, outcome: Outcome) -> None:
        self._known[outcome.turn, outcome.asked] = outcome
        if self._path is not None:
            try:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(outcome), ensure_ascii=False) + "\n")
            except OSError as error:
                raise _unusable(self._path, error) from None


ROW_START = b'{"turn": '


def _read(path: Path) -> list[Outcome]:
    """Every whole row; a last row that a stop cut off is taken away, for the next one is written behind it."""
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    torn = data[len(whole) :]
    rows = [_outcome(line, f"{path}:{number}") for number, line in enumerate(whole.splitlines(), 1)]
    if torn and not (torn.startswith(ROW_START) or ROW_START.startswith(torn)):
        raise _foreign(f"{path}:{len(rows) + 1}")
    if torn:
        path.write_bytes(whole)
    return rows


def _outcome(line: bytes, place: str) -> Outcome:
    try:
        given: dict[str, Any] = json.loads(line)
        return Outcome(**{**given, "untrusted": tuple(given["untrusted"])})
    except (ValueError, TypeError, KeyError):
        raise _foreign(place) from None


def _foreign(place: str) -> BadRequest:
    return BadRequest(f"{place} is no result of an evaluation: name another file with --out")


def _unusable(path: Path, error: OSError) -> BadRequest:
    return BadRequest(f"{path} cannot be used: {error.strerror}. Name another file with --out")
