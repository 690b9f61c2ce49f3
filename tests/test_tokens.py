from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memagent.tokens import count_tokens, well_formed

TEXTS = st.text(st.characters(), max_size=200)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("hello world", 2),
        ("The user lives in Berlin and likes green tea.", 10),
        ("日本語のテキスト", 6),
        ("\U0001f600\U0001f600", 2),
    ],
)
def test_tokens_are_those_of_o200k(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


def test_a_special_token_in_a_text_is_text() -> None:
    assert count_tokens("<|endoftext|>") == 7


def test_a_long_text_is_counted_and_not_estimated() -> None:
    assert count_tokens(" a" * 1_500_000) == 1_500_000


def test_a_lone_surrogate_counts_as_a_replacement_character() -> None:
    assert count_tokens("a\ud800b") == count_tokens("a\ufffdb")


def test_a_surrogate_pair_is_the_character_it_stands_for() -> None:
    assert well_formed("\ud83d\ude00\udc00") == "\U0001f600\ufffd"


@given(TEXTS)
@settings(max_examples=50)
def test_every_text_has_a_count_and_a_form_that_can_be_encoded(text: str) -> None:
    assert count_tokens(text) <= 4 * len(text)
    assert count_tokens(well_formed(text)) == count_tokens(text)
    assert well_formed(text).encode().decode() == well_formed(text)
