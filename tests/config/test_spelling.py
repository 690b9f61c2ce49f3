"""A misspelt key leads to the key that was meant, and never to its opposite."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memagent.config.spelling import fold, meant

MEMORY = (
    "disabled", "validKeys", "tokenLimit", "charLimit", "maxInputTokens", "personalize", "messageWindowSize", "agent",
)  # fmt: skip


@pytest.mark.parametrize(
    ("written", "right", "certain"),
    [
        ("validkeys", "validKeys", True),
        ("valid_keys", "validKeys", True),
        ("Valid-Keys", "validKeys", True),
        ("validKyes", "validKeys", True),
        ("validKey", "validKeys", True),
        ("personalise", "personalize", True),
        ("agnet", "agent", True),
        ("agents", "agent", True),
        ("message_window_size", "messageWindowSize", True),
        ("windowSize", "messageWindowSize", False),
        ("tokensLimit", "tokenLimit", True),
        ("maxTokens", "maxInputTokens", False),
    ],
)
def test_a_slip_leads_to_the_key(written: str, right: str, certain: bool) -> None:
    found = meant(written, MEMORY)
    assert found is not None
    assert (found.name, found.certain) == (right, certain)


@pytest.mark.parametrize("written", ["enabled", "x", "", "color", "日本語"])
def test_what_resembles_nothing_or_the_opposite_gets_no_hint(written: str) -> None:
    assert meant(written, MEMORY) is None


def test_two_equally_near_names_are_no_certain_slip() -> None:
    found = meant("titleXodel", ["titleModel", "titleYodel"])
    assert found is not None
    assert not found.certain


@given(st.sampled_from(MEMORY), st.data())
def test_one_dropped_letter_is_always_recognised(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name) - 1))
    written = name[:at] + name[at + 1 :]
    found = meant(written, MEMORY)
    assert found is not None
    assert found.name == name


@given(st.text(max_size=30))
def test_folding_twice_changes_nothing(name: str) -> None:
    assert fold(fold(name)) == fold(name)
