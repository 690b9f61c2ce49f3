"""Session keys: O01 to O10 and V25 of spec/seeds.md."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memagent.sessions.keys import (
    GLOBAL,
    AgentKey,
    DirectScope,
    KeyKind,
    agent_id,
    channel_key,
    cron_key,
    direct_key,
    fold,
    group_key,
    hook_key,
    kind_of,
    main_key,
    parent_of,
    parse,
    stored_key,
    thread_key,
)


def test_o01_the_main_chat() -> None:
    assert main_key() == "agent:main:main"
    assert main_key("Ops", "Home") == "agent:ops:home"
    assert main_key("", "") == "agent:main:main"


def test_o02_groups_and_rooms_and_a_missing_peer() -> None:
    assert group_key("main", "Telegram", "-100") == "agent:main:telegram:group:-100"
    assert channel_key("main", "discord", "C7") == "agent:main:discord:channel:c7"
    assert group_key("main", "telegram", " ") == "agent:main:telegram:group:unknown"
    assert channel_key("main", "", "") == "agent:main:unknown:channel:unknown"
    assert group_key("main", "telegram", "1") != group_key("main", "telegram", "2")


def test_o03_jobs_and_webhooks_are_stored_under_their_agent() -> None:
    assert (cron_key("Daily"), hook_key("AB-1")) == ("cron:daily", "hook:ab-1")
    assert stored_key(cron_key("daily")) == "agent:main:cron:daily"
    assert stored_key(cron_key("daily"), agent="Ops", run="R1") == "agent:ops:cron:daily:run:r1"
    assert stored_key(hook_key("ab-1")) == "agent:main:hook:ab-1"
    assert stored_key("agent:a:b") == "agent:a:b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" Ops Team! ", "ops-team"),
        ("", "main"),
        ("  ", "main"),
        ("OPS_2", "ops_2"),
        ("a" * 80, "a" * 64),
        ("a" * 64, "a" * 64),
        ("-_x", "_x"),
        ("!!!", "main"),
        ("Größe", "gr-e"),
        ("mèo", "m-o"),
    ],
)
def test_o04_v25_an_agents_id_out_of_any_text(text: str, expected: str) -> None:
    assert agent_id(text) == expected


@given(st.text(max_size=100))
def test_o04_an_agents_id_is_its_own_agents_id(text: str) -> None:
    found = agent_id(text)
    assert agent_id(found) == found
    assert 1 <= len(found) <= 64
    assert ":" not in found


def test_o05_keys_are_lower_case() -> None:
    assert fold(" Agent:Main:X ") == "agent:main:x"
    assert main_key("MAIN") == main_key("main")


@pytest.mark.parametrize(
    "key", ["agent:x", "agent::x", "agent:x:", "cron:7", "main", "", "agents:a:b", ":a:b"]
)
def test_o06_what_is_no_agents_key(key: str) -> None:
    assert parse(key) is None


def test_o06_an_agents_key_has_an_agent_and_a_rest() -> None:
    assert parse("Agent:Ops:telegram:group:7") == AgentKey("ops", "telegram:group:7")


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (DirectScope.MAIN, "agent:main:main"),
        (DirectScope.PER_PEER, "agent:main:direct:ada"),
        (DirectScope.PER_CHANNEL_PEER, "agent:main:telegram:direct:ada"),
        (DirectScope.PER_ACCOUNT_CHANNEL_PEER, "agent:main:telegram:work:direct:ada"),
    ],
)
def test_o07_who_shares_a_direct_chat(scope: DirectScope, expected: str) -> None:
    assert direct_key(channel="Telegram", account="Work", peer="Ada", scope=scope) == expected
    assert direct_key(channel="telegram", account="work", peer=" ", scope=scope) == "agent:main:main"


def test_o07_links_make_one_person_of_several_peers() -> None:
    links = {"Ada": ["telegram:7", "8"]}
    scope = DirectScope.PER_PEER
    assert direct_key(channel="telegram", peer="7", scope=scope, links=links) == "agent:main:direct:ada"
    assert direct_key(channel="signal", peer="8", scope=scope, links=links) == "agent:main:direct:ada"
    assert direct_key(channel="signal", peer="7", scope=scope, links=links) == "agent:main:direct:7"
    assert direct_key(channel="telegram", peer="7", links=links) == "agent:main:main"


def test_o08_a_threads_parent_stands_before_the_last_marker() -> None:
    parent = "agent:main:telegram:group:7"
    assert thread_key(parent, "T1") == f"{parent}:thread:t1"
    assert parent_of(thread_key(parent, "1", topic=True)) == parent
    assert parent_of(f"{parent}:topic:1:thread:2") == f"{parent}:topic:1"
    assert parent_of(parent) is None


def test_o09_a_thread_comes_before_a_group_before_a_direct_chat() -> None:
    group = "agent:main:telegram:group:7"
    assert kind_of(thread_key(group, "1")) is KeyKind.THREAD
    assert kind_of(group, thread=True) is KeyKind.THREAD
    assert kind_of(group) is KeyKind.GROUP
    assert kind_of("agent:main:discord:channel:7") is KeyKind.GROUP
    assert kind_of("agent:main:main", group=True) is KeyKind.GROUP
    assert kind_of("agent:main:main") is KeyKind.DIRECT


def test_o10_the_global_key_is_no_agents() -> None:
    assert stored_key(" Global ") == GLOBAL == "global"
    assert stored_key("global", agent="ops") == "global"
