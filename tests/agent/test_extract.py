from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memagent.agent.extract import Extraction, LoopLimits, Stopped, extract
from memagent.agent.prompt import Prompt
from memagent.agent.tools import ToolStatus
from memagent.errors import ModelFault, ModelRefused, ModelUnavailable
from memagent.llm import Usage
from memagent.llm.script import Answer, Rule, Script, call, calling
from memagent.llm.scripted import ScriptedModel
from memagent.memory import Message, ToolCall
from memagent.store import DeleteMemory
from tests.agent.remembered import ledger

if TYPE_CHECKING:
    from memagent.agent.ledger import Ledger

PROMPT = Prompt((Message("system", "s"), Message("user", "# Current Chat:\n\nHuman: x")), ())


async def run(
    *answers: Answer, book: Ledger | None = None, **limits: int
) -> tuple[Extraction, ScriptedModel]:
    model = ScriptedModel(Script.of(*answers))
    return await extract(model, PROMPT, book or ledger(), limits=LoopLimits(**limits)), model


def statuses(extraction: Extraction) -> list[str]:
    return [outcome.status.value for outcome in extraction.tool_outcomes]


async def test_one_call_is_made_when_nothing_is_refused() -> None:
    extraction, model = await run(calling("set_memory", key="home", value="x"), Answer("never asked"))
    assert len(model.requests) == len(extraction.calls) == 1
    assert extraction.stopped is Stopped.DONE
    assert [edit.key for edit in extraction.edits] == ["home"]
    assert model.requests[0] == PROMPT.messages


async def test_all_calls_of_one_answer_run_in_order() -> None:
    calls = (
        call("set_memory", key="a", value="x"),
        call("delete_memory", key="b"),
        call("set_memory", key="c", value="y"),
    )
    extraction, _ = await run(Answer(calls=calls), book=ledger({"b": "z"}))
    assert statuses(extraction) == ["set", "deleted", "set"]
    assert [edit.key for edit in extraction.edits] == ["a", "b", "c"]
    assert isinstance(extraction.edits[1], DeleteMemory)


async def test_a_refusal_goes_back_to_the_model_beside_what_was_done() -> None:
    first = Answer(
        calls=(call("set_memory", key="homes", value="x"), call("set_memory", key="work", value="y"))
    )
    extraction, model = await run(
        first, calling("set_memory", key="home", value="x"), book=ledger(valid_keys=("home", "work"))
    )
    assert statuses(extraction) == ["invalid_key", "set", "set"]
    assert [edit.key for edit in extraction.edits] == ["work", "home"]
    assert extraction.stopped is Stopped.DONE
    asked, *answered = model.requests[1][2:]
    assert [each.name for each in asked.tool_calls] == ["set_memory", "set_memory"]
    assert answered == [
        Message(
            "tool", 'Invalid key "homes". Must be one of: home, work', tool_call_id=asked.tool_calls[0].id
        ),
        Message("tool", 'Memory set for key "work" (1 tokens)', tool_call_id=asked.tool_calls[1].id),
    ]


async def test_after_a_refusal_at_most_two_more_calls_are_made() -> None:
    wrong = [calling("set_memory", key=f"k{number}", value="x") for number in range(5)]
    extraction, model = await run(*wrong, book=ledger(valid_keys=("home",)))
    assert len(model.requests) == 3
    assert extraction.stopped is Stopped.LIMIT
    assert statuses(extraction) == ["invalid_key"] * 3


async def test_a_model_that_gives_up_after_a_refusal_is_done() -> None:
    extraction, _ = await run(calling("set_memory", key="", value="x"), Answer("Then not."))
    assert extraction.stopped is Stopped.DONE
    assert extraction.edits == ()


async def test_a_missing_memory_is_not_asked_about_again() -> None:
    extraction, model = await run(calling("delete_memory", key="dog"))
    assert statuses(extraction) == ["missing"]
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("answer", "stopped"),
    [
        (Answer("Nothing to remember."), Stopped.NOTHING),
        (Answer(), Stopped.EMPTY_REPLY),
        (Answer(" \n"), Stopped.EMPTY_REPLY),
        (Answer("I would", finish_reason="length"), Stopped.CUT_OFF),
        (Answer(finish_reason="content_filter"), Stopped.FILTERED),
    ],
)
async def test_an_answer_without_calls_says_why(answer: Answer, stopped: Stopped) -> None:
    extraction, _ = await run(answer)
    assert (extraction.stopped, extraction.edits, len(extraction.calls)) == (stopped, (), 1)


async def test_a_model_that_only_repeats_itself_is_stopped() -> None:
    extraction, model = await run(
        *[calling("set_memory", key="x", value="y")] * 5, book=ledger(valid_keys=("home",))
    )
    assert extraction.stopped is Stopped.REPEATING
    assert len(model.requests) == 2


async def test_repeated_calls_in_one_answer_change_once() -> None:
    extraction, _ = await run(Answer(calls=(call("set_memory", key="a", value="x"),) * 9))
    assert statuses(extraction) == ["set"] + ["repeated"] * 8
    assert len(extraction.edits) == 1
    assert extraction.stopped is Stopped.DONE


async def test_calls_beyond_the_limit_are_not_run_and_are_told() -> None:
    calls = tuple(call("set_memory", key=f"k{number}", value=f"v{number}") for number in range(60))
    extraction, _ = await run(Answer(calls=calls), tool_calls=50)
    assert statuses(extraction) == ["set"] * 50 + ["too_many"] * 10
    assert len(extraction.edits) == 50


async def test_malformed_calls_are_outcomes_and_may_be_mended() -> None:
    bad = Answer(calls=(ToolCall("", "set_memory", "{key: home}"), ToolCall("", "remember", "{}")))
    extraction, model = await run(bad, calling("set_memory", key="home", value="x"))
    assert statuses(extraction) == ["bad_arguments", "unknown_tool", "set"]
    ids = [each.id for each in model.requests[1][2].tool_calls]
    assert len(set(ids)) == 2
    assert all(ids)


async def test_calls_that_share_an_id_are_told_apart() -> None:
    twins = Answer(calls=(ToolCall("c", "nope", "{}"), ToolCall("c", "nope", "{}")))
    _, model = await run(twins, Answer("ok"))
    assert len({each.id for each in model.requests[1][2].tool_calls}) == 2


@pytest.mark.parametrize(
    ("answer", "kind"), [(Answer(status=503), ModelUnavailable), (Answer(status=401), ModelRefused)]
)
async def test_a_first_call_that_fails_raises_and_is_never_nothing(
    answer: Answer, kind: type[ModelFault]
) -> None:
    with pytest.raises(kind):
        await run(answer)


async def test_a_later_call_that_fails_leaves_what_was_gathered() -> None:
    first = Answer(calls=(call("set_memory", key="home", value="x"), call("set_memory", key="no", value="x")))
    extraction, _ = await run(first, Answer(status=503), book=ledger(valid_keys=("home",)))
    assert extraction.stopped is Stopped.FAILED
    assert isinstance(extraction.fault, ModelUnavailable)
    assert [edit.key for edit in extraction.edits] == ["home"]
    assert len(extraction.calls) == 1


async def test_usage_is_the_sum_of_all_calls_and_an_unknown_price_stays_unknown() -> None:
    def answer(key: str, usage: Usage) -> Answer:
        return Answer(calls=(call("set_memory", key=key, value="x"),), usage=usage)

    one, two = Usage(10, 2, 3, 1, 0.5), Usage(20, 4, 0, 0, 0.25)
    extraction, _ = await run(answer("no", one), answer("a", two), book=ledger(valid_keys=("a",)))
    assert extraction.usage == Usage(30, 6, 3, 1, 0.75)
    extraction, _ = await run(answer("no", one), answer("a", Usage(1, 1)), book=ledger(valid_keys=("a",)))
    assert extraction.usage.cost_usd is None


TEXT = st.text(max_size=8)
ARGUMENTS = st.one_of(
    TEXT,
    st.dictionaries(st.sampled_from(["key", "value"]), st.sampled_from(["a", "b", ""]) | st.integers()).map(
        json.dumps
    ),
)
CALLS = st.builds(ToolCall, TEXT, st.sampled_from(["set_memory", "delete_memory", "other"]), ARGUMENTS)
ANSWERS = st.builds(
    Answer,
    text=TEXT,
    calls=st.lists(CALLS, max_size=6).map(tuple),
    status=st.sampled_from([200] * 6 + [401, 500]),
    finish_reason=st.sampled_from(["", "stop", "length"]),
)


@given(
    st.lists(ANSWERS, min_size=1, max_size=6),
    st.integers(1, 4),
    st.integers(0, 8),
    st.dictionaries(st.sampled_from(["a", "b"]), TEXT),
    st.sampled_from([(), ("a",)]),
)
@settings(max_examples=200, deadline=None)
async def test_no_script_makes_more_calls_than_allowed_or_anything_but_a_fault(
    answers: list[Answer], calls: int, tool_calls: int, held: dict[str, str], valid_keys: tuple[str, ...]
) -> None:
    model = ScriptedModel(Script([Rule(tuple(answers))]))
    book = ledger(held, valid_keys=valid_keys, token_limit=3)
    limits = LoopLimits(calls=calls, tool_calls=tool_calls)
    try:
        extraction = await extract(model, PROMPT, book, limits=limits)
    except ModelFault:
        assert len(model.requests) == 1
        return
    assert len(model.requests) <= calls
    assert len(extraction.calls) + (extraction.stopped is Stopped.FAILED) == len(model.requests)
    assert (extraction.fault is not None) == (extraction.stopped is Stopped.FAILED)
    ran = [outcome for outcome in extraction.tool_outcomes if outcome.status is not ToolStatus.TOO_MANY]
    assert len(ran) <= tool_calls
    assert extraction.edits == tuple(edit for outcome in ran for edit in outcome.edits)


async def test_values_and_answers_stay_out_of_every_repr() -> None:
    extraction, _ = await run(calling("set_memory", key="home", value="my secret place"))
    assert "secret" not in repr(extraction.tool_outcomes)
