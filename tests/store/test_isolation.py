"""No two scopes, keys or users share anything, whatever they are called."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memagent.errors import BadRequest, InvalidKey
from memagent.memory import MAX_KEY_CHARS, Scope, ScopeKind
from memagent.store import Limits, SetMemory
from memagent.store.keys import (
    MAX_SCOPE_CHARS,
    check_prefix,
    memory_key,
    memory_prefix,
    plain,
    scope_and_key,
    scope_from_id,
    scope_id,
    script_keys,
)
from tests.store.desk import Desk, at, keys, opened, used

if TYPE_CHECKING:
    from memagent.store.redis import RedisStore

NASTY = [
    "a",
    "A",
    "a:b",
    "a}",
    "{a",
    "a*",
    "a?b",
    "a b",
    "a,b",
    "a|b",
    "a\\b",
    "%",
    "%41",
    "é",
    "e\u0301",
    "👩‍👩‍👧",
    "\x00",
    "\n",
    "\ud800",
    "LANES",
    "@lane:{LANES}",
    "-",
    "''",
    "u:a",
    "*",
]

names = st.one_of(st.sampled_from(NASTY), st.text(min_size=1, max_size=12))
scopes = st.builds(Scope, st.sampled_from(ScopeKind), names, st.one_of(st.just(""), names))
whole_texts = st.one_of(
    st.sampled_from([name for name in NASTY if name != "\ud800"]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12),
)


def redis_names(scope: Scope, key: str) -> list[str]:
    fixed = script_keys("ma", scope)
    return [*fixed[:7], fixed[8] + key.replace("%", "%25").replace("\0", "%00")]


@given(scopes, scopes, whole_texts, whole_texts)
def test_no_two_scopes_or_keys_share_a_redis_key(one: Scope, other: Scope, key: str, another: str) -> None:
    if (one, key) != (other, another):
        assert redis_names(one, key)[7] != redis_names(other, another)[7]
    if one != other:
        assert not set(redis_names(one, key)) & set(redis_names(other, another))


@given(scopes, whole_texts)
def test_scope_and_key_can_be_read_back_from_a_redis_key(scope: Scope, key: str) -> None:
    assert scope_from_id(scope_id(scope)) == scope
    assert scope_and_key("ma", redis_names(scope, key)[7]) == (scope, key)


@given(scopes, whole_texts)
def test_everything_of_one_scope_lies_in_one_slot(scope: Scope, key: str) -> None:
    def tag(name: str) -> str:
        inside = name[name.index("{") + 1 :]
        return inside[: inside.index("}")]

    assert len({tag(name) for name in (*script_keys("ma", scope), redis_names(scope, key)[7])}) == 1


def test_an_overlong_scope_is_refused_before_the_engine_would_cut_it() -> None:
    scope_id(Scope(ScopeKind.USER, "x" * MAX_SCOPE_CHARS))
    with pytest.raises(BadRequest, match="at most"):
        scope_id(Scope(ScopeKind.USER, "x" * (MAX_SCOPE_CHARS + 1)))


def test_a_key_has_at_most_a_thousand_characters_and_is_whole() -> None:
    assert memory_key("k" * MAX_KEY_CHARS)
    for key in ("", "k" * (MAX_KEY_CHARS + 1), "half \ud83d"):
        with pytest.raises(InvalidKey):
            memory_key(key)
    with pytest.raises(BadRequest, match="position 5"):
        plain("half \ud83d", "value")


@pytest.mark.parametrize("prefix", ["", "a:b", "{a}", "a*", "a b", "é"])
def test_a_prefix_that_could_meet_another_is_refused(prefix: str) -> None:
    with pytest.raises(BadRequest):
        check_prefix(prefix)


def test_one_prefix_never_watches_anothers_memories() -> None:
    assert not memory_prefix("ma2").startswith(memory_prefix("ma"))


async def test_users_of_any_name_see_their_own_memories_only(store: RedisStore) -> None:
    owners = [Scope(ScopeKind.USER, name) for name in NASTY]
    owners += [Scope(ScopeKind.USER, "a", "b"), Scope(ScopeKind.GLOBAL, "a"), Scope(ScopeKind.SHARED, "a")]
    desks = [Desk(store, owner) for owner in owners]
    for number, desk in enumerate(desks):
        await desk.save(f"mine {number}", axis=1, terms=("mochi",))
    for number, desk in enumerate(desks):
        recalled = await desk.chat(1, about=1, terms=("mochi",), used=99, hits=99)
        mine = [f"mine {number}"]
        assert (await desk.keys(), keys(recalled), used(recalled)) == (set(mine), mine, mine)
    assert {memory.scope for memory in await store.unsearched(None, "test-embedder", limit=999)} == set()


async def test_unsearched_finds_the_owners_of_any_name_again(store: RedisStore) -> None:
    owners = [Scope(ScopeKind.USER, name, agent) for name in NASTY for agent in ("", "x:{y}")]
    for owner in owners:
        await Desk(store, owner).save("k%:\x00{}", axis=None)
    found = await store.unsearched(None, "test-embedder", limit=999)
    assert {memory.scope for memory in found} == set(owners)
    assert {memory.key for memory in found} == {"k%:\x00{}"}
    assert [memory.scope for memory in await store.unsearched(owners[0], "test-embedder")] == [owners[0]]


@pytest.mark.parametrize("term", ["_", "`", "__", "a_b", "|", "}", "\\", "*", "-", "c++", "mèo"])
async def test_a_memory_is_found_by_any_term_that_it_has(desk: Desk, term: str) -> None:
    await desk.save("a", terms=(term, "other"))
    [hit] = (await desk.chat(0, terms=(term,))).hits
    assert hit.parts["lexical"] > 0


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_key_value_and_term_go_in_and_come_out_whole(redis_url: str, data: st.DataObject) -> None:
    entries = data.draw(st.dictionaries(whole_texts, whole_texts.filter(str.strip), min_size=1, max_size=4))
    terms = tuple(data.draw(st.lists(st.text(max_size=6), max_size=5)))

    async def check() -> None:
        async with opened(redis_url, "t-any", embedder_id="any") as store:
            desk = Desk(store)
            await store.erase(desk.scope)
            edits = [SetMemory(key, value + key, 1, terms=terms) for key, value in entries.items()]
            await store.apply(desk.scope, edits, limits=Limits(), now=at(0))
            for waiting in await store.unsearched(desk.scope, "any"):
                assert await store.attach_vector(
                    waiting, vector=[1.0] * 16, embedder="any", terms=terms, now=at(0)
                )
            recalled = await desk.chat(
                0, vector=[1.0] * 16, embedder="any", terms=terms, candidates=1, hits=99
            )
            assert recalled.searched
            held = {memory.key: memory.value for memory in await store.list(desk.scope)}
            assert held == {memory.key: memory.value for memory in recalled.active}
            assert set(held.values()) <= {value + key for key, value in entries.items()}
            await store.erase(desk.scope)

    asyncio.run(check())
