"""A bound that holds, also around code that loses a cancellation, as `asyncio.wait_for` may before Python 3.12."""

import asyncio
import gc

import pytest

from memagent.deadline import within


async def deaf(heard: asyncio.Event, go_on: asyncio.Event) -> str:
    """Is asked to stop, and does not."""
    try:
        await go_on.wait()
    except asyncio.CancelledError:
        heard.set()
    await go_on.wait()
    return "late"


async def test_what_is_done_in_time_is_returned() -> None:
    assert await within(5, asyncio.sleep(0, "done")) == "done"


async def test_without_a_bound_it_takes_as_long_as_it_takes() -> None:
    assert await within(None, asyncio.sleep(0, "done")) == "done"


async def test_an_error_in_time_is_raised() -> None:
    async def fails() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await within(5, fails())


@pytest.mark.parametrize("seconds", [0.0, 0.01])
async def test_what_loses_its_cancellation_is_not_waited_for(seconds: float) -> None:
    heard, go_on = asyncio.Event(), asyncio.Event()
    async with asyncio.timeout(5):
        with pytest.raises(TimeoutError):
            await within(seconds, deaf(heard, go_on))
        if seconds:
            await heard.wait()
    go_on.set()
    await asyncio.sleep(0)


async def test_what_fails_after_its_time_is_nobodys_error() -> None:
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    ended = asyncio.Event()

    async def fails_late() -> None:
        try:
            await asyncio.sleep(5)
        finally:
            ended.set()
            raise KeyError("late")

    with pytest.raises(TimeoutError):
        await within(0.01, fails_late())
    await ended.wait()
    await asyncio.sleep(0)
    gc.collect()
    assert told == []


async def test_who_is_cancelled_cancels_what_it_waits_for() -> None:
    heard, go_on = asyncio.Event(), asyncio.Event()
    outer = asyncio.create_task(within(5, deaf(heard, go_on)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    outer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await outer
    await heard.wait()
    go_on.set()
