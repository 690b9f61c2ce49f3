"""RE2's grammar: what it takes, what it refuses, and how large it compiles; answers of LibreChat's own engine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memagent.config.librechat.re2 import program_size


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        ("", 3), ("a", 3), ("abc", 5), ("image/.*", 10), ("a*", 4), ("a+", 4), ("a?", 4), ("(a)", 5), ("(?:a)", 3),
        ("a|b", 3), ("ab|cd", 7), ("[a-z]+", 4), ("a{3}", 5), ("a{2,4}", 8), ("a{2,}", 5), ("a{0}", 3), ("(a*)*", 8),
        ("(?i)a", 3), ("(?P<n>a)", 5), ("(?<n>a)", 5), ("\\d\\.\\pL", 5), ("\\p{Greek}", 3), ("[[:alpha:]]", 3),
        ("\\Qa*\\E", 4), ("\\x41\\x{42}\\07", 5), ("^a$", 5), ("a{,3}", 7), ("{", 3), ("a{x}", 6), ("[]a]", 3),
        ("é😀", 4), ("a{1000}", 1002), ("|", 3), ("()", 5),
    ],
)  # fmt: skip
def test_a_pattern_compiles_to_so_many_instructions(pattern: str, size: int) -> None:
    assert program_size(pattern) == size


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", "(a)\\1", "(?P=n)", "a**", "a*+", "*", "(*)", "a|*", "a{1001}", "(a{100}){11}",
        "a{3,2}", "(", ")", "(a", "a)", "[a", "[z-a]", "[[:foo:]]", "\\p{Nobody}", "\\pX", "\\", "\\e", "\\8", "\\C", "\\Z", "(?x)a",
        "(?P<1 >a)", "(?P<n>a)(?P<n>b)", "(?P<n", "[\\1]", "\\x4", "\\x{110000}", "(?-)a", "\\é",
        "(" * 1001 + ")" * 1001,
    ],
)  # fmt: skip
def test_what_re2_refuses_has_no_size(pattern: str) -> None:
    assert program_size(pattern) is None


@given(st.text(alphabet="ab()[]{}*+?|\\^$.-,1dpLQE:=!<>PiU ", max_size=24))
def test_every_text_is_a_pattern_or_none(pattern: str) -> None:
    size = program_size(pattern)
    assert size is None or size > 2
