"""Commands: O15 to O17, O22, O57, V22 and V23 of spec/seeds.md."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from memagent.sessions.commands import Ask, Command, command, greeting


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/new", Command(Ask.RESET)),
        ("  /RESET ", Command(Ask.RESET)),
        ("/NEW Build X/Y.txt", Command(Ask.RESET, "Build X/Y.txt")),
        ("/new\nline", Command(Ask.RESET, "line")),
        ("/new  xin chào Ünal", Command(Ask.RESET, "xin chào Ünal")),
        ("/newspaper", None),
        ("/new: x", None),
        ("say /new", None),
        ("new", None),
        ("", None),
    ],
)
def test_o15_v22_v23_a_trigger_is_the_whole_message_or_stands_before_a_space(
    text: str, expected: Command | None
) -> None:
    assert command(text) == expected


def test_o15_triggers_can_be_chosen() -> None:
    assert command("Làm Lại đi", triggers=["làm lại"]) == Command(Ask.RESET, "đi")
    assert command("/new", triggers=["/fresh"]) is None


@pytest.mark.parametrize("text", ["/new", "/reset now", "/compact"])
def test_o16_v23_a_strangers_command_is_ordinary_text(text: str) -> None:
    assert command(text, authorised=False) is None


@pytest.mark.parametrize(
    "text",
    [
        "@Neo /new go",
        "neo, /new go",
        "<@neo> /new go",
        "[Tue 2026-03-01 10:00] /new go",
        "[Telegram Ada] [10:00] @neo: /new go",
    ],
)
def test_o17_mentions_and_structural_prefixes_are_left_out_before(text: str) -> None:
    assert command(text, mentions=["@neo"]) == Command(Ask.RESET, "go")


def test_o17_a_name_that_only_begins_like_a_mention_stays() -> None:
    assert command("neon /new", mentions=["neo"]) is None


def test_o22_the_first_word_may_switch_the_model() -> None:
    models = {"gpt-5", "Opus"}
    assert command("/new opus", models=models) == Command(Ask.RESET, "", "Opus")
    assert command("/new GPT-5 hello", models=models) == Command(Ask.RESET, "hello", "gpt-5")
    assert command("/new hello gpt-5", models=models) == Command(Ask.RESET, "hello gpt-5")


def test_o22_the_greeting_names_the_date_of_the_users_zone() -> None:
    text = greeting(datetime(2026, 3, 2, 1, 0, tzinfo=ZoneInfo("Asia/Ho_Chi_Minh")))
    assert "Monday, 2026-03-02" in text


@pytest.mark.parametrize(
    ("text", "rest"),
    [("/compact", ""), ("/compact keep Names", "keep Names"), ("/Compact: keep Names", "keep Names")],
)
def test_o57_compacting_with_and_without_a_wish(text: str, rest: str) -> None:
    assert command(text) == Command(Ask.COMPACT, rest)


def test_o57_a_word_that_begins_like_it_is_no_command() -> None:
    assert command("/compaction") is None
