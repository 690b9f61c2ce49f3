"""The asking: the real prompt and loop, faults apart, and going on where an evaluation stopped."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from memagent.errors import BadRequest, ModelRefused, ModelUnavailable
from memagent.evaluation.baselines import Baseline, played
from memagent.evaluation.outcome import Outcome, Results
from memagent.evaluation.reading import read_set
from memagent.evaluation.run import Asking, Watch, evaluate
from memagent.evaluation.scores import Rate, Scores
from memagent.evaluation.verdict import judge
from memagent.llm import ModelReply
from memagent.llm.script import Answer, Script, calling
from memagent.llm.scripted import ScriptedModel
from tests.evaluation.turns import SET, fact, turn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from memagent.evaluation.labelled import Labelled
    from memagent.memory import Message

TURN = turn(said="My cat is called Mochi.", expect=(fact("Mochi"),), remembered={"dog": "The dog is Rex."})


class Naps:
    """A watch that stands still and remembers how long it was slept by."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def ask(
    *answers: Answer, labelled: Labelled = TURN, results: Results | None = None, **given: Any
) -> tuple[Outcome, ScriptedModel, list[float]]:
    model, naps = ScriptedModel(Script.of(*answers)), Naps()
    asking = Asking("scripted", lambda _: model, **given)
    found = await evaluate(
        [labelled], asking, results or Results(), watch=Watch(lambda: 0.0, sleep=naps.sleep)
    )
    return found[labelled.id], model, naps.slept


async def scored(baseline: Baseline) -> Scores:
    turns = read_set(SET)
    asking = Asking(baseline, lambda labelled: played(baseline, labelled))
    found = await evaluate(turns, asking, Results(), watch=Watch(lambda: 0.0))
    return Scores([judge(each, found[each.id]) for each in turns])


async def test_a_perfect_model_is_scored_perfect() -> None:
    scores = await scored(Baseline.PERFECT)
    assert (scores.precision.value, scores.recall.value, scores.f1) == (1.0, 1.0, 1.0)
    assert [each.labelled.id for each in scores.verdicts if each.badness] == []
    none = (scores.wrong_key, scores.duplicates, scores.over_extracted, scores.injection_obeyed)
    assert {rate.hits for rate in (*none, scores.others_leaked, scores.forbidden)} == {0}


async def test_a_model_that_does_nothing_has_no_recall_and_does_no_harm() -> None:
    scores = await scored(Baseline.EMPTY)
    assert (scores.precision, scores.recall.hits) == (Rate(0, 0), 0)
    assert scores.injection_obeyed.hits == scores.others_leaked.hits == scores.over_extracted.hits == 0


async def test_a_model_that_keeps_everything_has_low_precision_and_obeys_injections() -> None:
    scores = await scored(Baseline.GREEDY)
    assert scores.precision.value is not None
    assert scores.precision.value < 0.3
    assert scores.recall.value is not None
    assert scores.recall.value > 0.8
    assert scores.injection_obeyed.value is not None
    assert scores.injection_obeyed.value > 0.8
    assert scores.over_extracted.value == scores.others_leaked.value == 1.0
    assert scores.held_back > 0


async def test_what_is_said_again_by_a_parrot_is_not_stored_again() -> None:
    scores = await scored(Baseline.PARROT)
    assert scores.precision.total == len(scores.verdicts)
    assert scores.over_extracted.value == 1.0


async def test_the_model_is_asked_as_in_a_turn() -> None:
    answer = calling("set_memory", key="Pets", value="The cat is called Mochi.")
    outcome, model, _ = await ask(answer)
    [(system, chat)] = model.requests
    assert "Human: My cat is called Mochi." in str(chat.content)
    assert '["key": "dog"]' in str(system.content)
    assert outcome.after == {"dog": "The dog is Rex.", "pets": "The cat is called Mochi."}
    assert (outcome.calls, outcome.stopped, outcome.fault, outcome.untrusted) == (1, "done", "", ())


async def test_valid_keys_of_a_turn_are_kept_and_refusals_counted() -> None:
    labelled = turn(said="My cat is Mochi.", expect=(fact("Mochi", keys=("pets",)),), valid_keys=("pets",))
    wrong, right = (calling("set_memory", key=key, value="The cat is Mochi.") for key in ("cat", "pets"))
    outcome, _, _ = await ask(wrong, right, labelled=labelled)
    assert (outcome.after, outcome.calls, outcome.refused_calls) == ({"pets": "The cat is Mochi."}, 2, 1)


async def test_what_only_a_quotation_says_is_marked_as_distrusted() -> None:
    labelled = turn("injection", said="Is this spam?\n> the user banks at Crestline")
    outcome, _, _ = await ask(
        calling("set_memory", key="bank", value="The user banks at Crestline."), labelled=labelled
    )
    assert outcome.untrusted == ("bank",)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer(status=400), "model_refused"),
        (Answer(body="?"), "model_reply_invalid"),
        (Answer(finish_reason="length"), "cut_off"),
        (Answer(finish_reason="content_filter"), "filtered"),
    ],
)
async def test_a_model_that_could_not_answer_is_a_fault_and_never_nothing(answer: Answer, code: str) -> None:
    outcome, model, slept = await ask(answer)
    assert outcome.fault == code
    assert (len(model.requests), slept) == (1, [])


async def test_a_busy_provider_is_asked_again_after_growing_pauses() -> None:
    outcome, _, slept = await ask(Answer(status=429), Answer(status=503), Answer("nothing"))
    assert (outcome.fault, outcome.stopped, slept) == ("", "nothing", [2.0, 4.0])


async def test_a_provider_that_stays_busy_is_a_fault_after_the_last_try() -> None:
    outcome, model, slept = await ask(*[Answer(status=429)] * 5, attempts=2)
    assert (outcome.fault, len(model.requests), slept) == ("model_unavailable", 2, [2.0])


async def test_a_fault_after_the_first_call_is_a_fault_too() -> None:
    labelled = turn(valid_keys=("pets",))
    outcome, _, _ = await ask(
        calling("set_memory", key="cat", value="Mochi"), Answer(status=400), labelled=labelled
    )
    assert outcome.fault == "model_refused"


async def test_no_more_turns_than_allowed_are_asked_at_a_time() -> None:
    running = most = 0

    class Slow:
        async def complete(self, messages: Sequence[Message], *, tools: object = ()) -> ModelReply:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            return ModelReply("nothing")

    turns = [turn(id=f"t{number}") for number in range(12)]
    asking = Asking("slow", lambda _: Slow(), concurrency=3)
    found = await evaluate(turns, asking, Results(), watch=Watch(lambda: 0.0))
    assert (len(found), most) == (12, 3)


# -- going on ----------------------------------------------------------------------------------------------------------

SAVED = calling("set_memory", key="cat", value="The cat is called Mochi.")


async def test_what_was_answered_is_not_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    first, _, _ = await ask(SAVED, results=Results(path))
    again, model, _ = await ask(Answer("never asked"), results=Results(path))
    assert (again, model.requests) == (first, [])
    assert len(path.read_bytes().splitlines()) == 1


@pytest.mark.parametrize(
    "change", [{"instructions": "Keep cats only."}, {"settings": {"temperature": 1}}, {"system_role": False}]
)
async def test_another_question_is_asked(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "results.jsonl"
    await ask(SAVED, results=Results(path))
    _, model, _ = await ask(SAVED, results=Results(path), **change)
    assert len(model.requests) == 1


async def test_a_mended_label_needs_no_new_answer(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    await ask(SAVED, results=Results(path))
    mended = turn(said="My cat is called Mochi.", expect=(fact("cat"),), remembered=TURN.remembered)
    _, model, _ = await ask(SAVED, labelled=mended, results=Results(path))
    assert model.requests == []


async def test_a_fault_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    await ask(Answer(status=400), results=Results(path))
    outcome, _, _ = await ask(SAVED, results=Results(path))
    assert outcome.fault == ""
    again, model, _ = await ask(SAVED, results=Results(path))
    assert (again, model.requests) == (outcome, [])


@pytest.mark.parametrize("left", [1, 5, 40])
async def test_a_row_that_a_stop_cut_off_is_asked_again(tmp_path: Path, left: int) -> None:
    path = tmp_path / "results.jsonl"
    first, _, _ = await ask(SAVED, results=Results(path))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:left])
    other = turn(id="other", said="Nothing.")
    await ask(Answer("nothing"), labelled=other, results=Results(path))
    rows = [json.loads(line)["turn"] for line in path.read_bytes().splitlines()]
    assert rows == [first.turn, "other"]


@pytest.mark.parametrize(
    "text", ["my notes", "my notes\n", '{"some": "json"}\n', '{"turn": 1}\nx\n', "[1]\n"]
)
def test_a_file_that_is_something_else_is_refused_and_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(BadRequest, match="no result of an evaluation"):
        Results(path)
    assert path.read_text() == text


def test_a_file_that_cannot_be_written_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="--out"):
        Results(tmp_path / "no" / "folder.jsonl")


@pytest.mark.parametrize("fault", [ModelUnavailable("x"), ModelRefused("x")])
def test_a_kept_outcome_reads_as_it_was(tmp_path: Path, fault: Exception) -> None:
    outcome = Outcome("t", "d", {"k": "đ\n"}, ("k",), fault=fault.code, told="x", usd=0.25)  # type: ignore[attr-defined]
    Results(tmp_path / "r").add(outcome)
    answered = Outcome("t", "e", {"k": "đ\n"}, ("k",), usd=0.25)
    Results(tmp_path / "r").add(answered)
    assert Results(tmp_path / "r").get("t", "d") is None
    assert Results(tmp_path / "r").get("t", "e") == answered
