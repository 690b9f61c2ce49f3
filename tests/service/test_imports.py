"""Memories in from elsewhere: every format is told apart, read, and what does not fit is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memagent.errors import BadRequest, PersonalizationOff
from memagent.service.imports import Format, Found, Wanted, decode, read

OID = {"$oid": "69a555907c0f4b2d9e61a3f8"}
LIBRECHAT_ROWS: list[Any] = [
    {"_id": OID, "userId": {"$oid": "aa"}, "key": "tea", "value": "Juno drinks oolong.", "tokenCount": 6},
    {"_id": OID, "userId": {"$oid": "aa"}, "key": "desk", "value": "Juno stands.", "agentId": "agent_a"},
    {"_id": OID, "userId": {"$oid": "bb"}, "key": "cat", "value": "Kim has a cat."},
    {"_id": OID, "userId": {"$oid": "bb"}, "key": "dog", "value": "Kim has a dog."},
]
LIBRECHAT_ANSWER = {
    "memories": [{"_id": "x", "userId": "aa", "key": "tea", "value": "Juno drinks oolong."}],
    "totalTokens": 6,
    "tokenLimit": None,
    "charLimit": 10000,
    "usagePercentage": None,
}
MEM0_ROWS: list[Any] = [
    {
        "id": "1",
        "memory": "Likes to hike in the Alps",
        "user_id": "juno",
        "hash": "h",
        "metadata": {"category": "hobbies"},
    },
    {"id": "2", "memory": "Lives in Graz", "user_id": "juno", "categories": ["personal_details"]},
    {"id": "3", "memory": "東京に住んでいた", "user_id": "juno"},
    {"id": "4", "memory": "On holiday", "user_id": "juno", "expiration_date": "2026-04-01"},
    {"id": "5", "memory": "Answers briefly", "user_id": "juno", "agent_id": "clerk"},
    {"id": "6", "memory": "  ", "user_id": "juno"},
]
SERVER_ROWS: list[Any] = [
    {
        "id": "01A",
        "text": "Prefers trains to planes",
        "user_id": "juno",
        "topics": ["travel"],
        "memory_type": "semantic",
    },
    {
        "id": "01B",
        "text": "Moved to Graz",
        "user_id": "juno",
        "memory_type": "episodic",
        "event_date": "2025-09-01T00:00:00Z",
    },
    {"id": "01C", "text": "hello there", "user_id": "juno", "memory_type": "message"},
    {"id": "01D", "text": "how are you", "user_id": "juno", "memory_type": "message"},
]
MARKDOWN = """---
updated: 2026-03-02
---
# MEMORY.md - what lasts

Juno runs a small bakery.

## People
- **Sister:** Grace, lives in Oslo
  - birthday in May
  - plays the oboe
* Neighbour feeds the cat
<!-- a note to the reader, not a memory -->

### At work
1. Orders flour on Mondays,
   always from the mill.
- [x] Oven repaired

```
- not a memory
```

| day | shift |
| --- | --- |

---
## Größe
東京の本店で働いた
"""


def found_in(data: Any, form: Format | None = None, **wanted: Any) -> tuple[Format, Found]:
    return read(decode(data if isinstance(data, str) else json.dumps(data)), form, Wanted(**wanted))


def items(found: Found) -> dict[str, str]:
    return {item.key: item.value for item in found.items}


def reasons(found: Found) -> list[str]:
    return [each.code for each in found.left_out]


def test_librechats_collection_gives_one_persons_shared_pool() -> None:
    form, found = found_in("\n".join(json.dumps(row) for row in LIBRECHAT_ROWS), owner="aa")
    assert (form, items(found)) == (Format.LIBRECHAT, {"tea": "Juno drinks oolong."})
    assert [each.why for each in found.left_out] == [
        "2 memories of other people were left out",
        "1 memories are of agent agent_a: `--agent agent_a` imports them",
    ]


def test_a_partition_of_librechats_collection_is_asked_for_by_its_agent() -> None:
    _, found = found_in(LIBRECHAT_ROWS, owner="aa", agent="agent_a")
    assert items(found) == {"desk": "Juno stands."}


def test_several_people_are_never_mixed() -> None:
    with pytest.raises(BadRequest, match=r"2 people.*--owner"):
        found_in(LIBRECHAT_ROWS)
    with pytest.raises(BadRequest, match="none of this owner"):
        found_in(LIBRECHAT_ROWS, owner="cc")


def test_librechats_answer_is_read_as_it_is() -> None:
    assert items(found_in(LIBRECHAT_ANSWER)[1]) == {"tea": "Juno drinks oolong."}
    form, nothing = found_in({**LIBRECHAT_ANSWER, "memories": []})
    assert (form, nothing.items) == (Format.LIBRECHAT, [])


def test_words_that_librechat_hid_are_left_out() -> None:
    row = {"key": "tea", "value": "", "contentFilterBlocked": True}
    assert reasons(found_in([row], Format.LIBRECHAT)[1]) == ["not_a_memory"]


@pytest.mark.parametrize(
    "data",
    [MEM0_ROWS, {"results": MEM0_ROWS, "relations": []}, {"count": 6, "next": None, "results": MEM0_ROWS}],
    ids=["list", "library", "platform"],
)
def test_mem0_is_named_by_category_and_first_words(data: Any) -> None:
    form, found = found_in(data)
    assert form is Format.MEM0
    assert list(items(found).values()) == ["Likes to hike in the Alps", "Lives in Graz", "東京に住んでいた"]
    first, second, third = items(found)
    assert (first, second) == ("hobbies_likes_hike_alps", "personal_details_lives_graz")
    assert third.startswith("memory_")
    assert sorted(reasons(found)) == ["expires", "not_a_memory", "other_partition"]


def test_mem0s_graph_is_counted_and_left_out() -> None:
    relations = [{"source": "juno", "relationship": "lives_in", "target": "graz"}] * 3
    _, found = found_in({"results": MEM0_ROWS[:1], "relations": relations})
    assert [each.why for each in found.left_out] == ["3 relations of mem0's graph say nothing by themselves"]


def test_agent_memory_servers_lines_of_chats_are_no_memories() -> None:
    form, found = found_in({"memories": SERVER_ROWS, "total": 4, "next_offset": None})
    assert form is Format.AGENT_MEMORY_SERVER
    assert items(found) == {
        "travel_prefers_trains_planes": "Prefers trains to planes",
        "moved_graz": "Moved to Graz (2025-09-01)",
    }
    assert [each.why for each in found.left_out] == ["2 records are lines of a chat, not memories"]


def test_every_point_and_paragraph_of_markdown_is_a_memory_under_its_heading() -> None:
    form, found = found_in(MARKDOWN)
    assert form is Format.OPENCLAW
    assert list(items(found).values()) == [
        "Juno runs a small bakery.",
        "People: Sister: Grace, lives in Oslo; birthday in May; plays the oboe",
        "People: Neighbour feeds the cat",
        "At work: Orders flour on Mondays, always from the mill.",
        "At work: Oven repaired",
        "Größe: 東京の本店で働いた",
    ]
    assert list(items(found))[:2] == ["juno_runs_small_bakery", "people_sister_grace_lives_oslo"]
    assert [each.why for each in found.left_out] == ["5 lines of code or tables were left out"]


def test_an_own_export_is_read_whole_or_not_at_all() -> None:
    rows = [{"key": "tea", "value": "oolong", "tags": ["#kitchen"], "trusted": False}]
    form, found = found_in({"memagent": 1, "memories": rows})
    assert (form, found.items[0].tags, found.items[0].trusted) == (Format.MEMAGENT, ("#kitchen",), False)
    for broken in (
        {"memagent": 2, "memories": []},
        {"memagent": 1},
        {"memagent": 1, "memories": [{"key": 1}]},
    ):
        with pytest.raises(BadRequest):
            found_in(broken)


@pytest.mark.parametrize(
    "data", [[], {}, "", "   ", 5, None, [1, 2], {"memories": [{"id": 1}]}, {"results": "x"}]
)
def test_what_is_of_no_format_is_refused_with_the_formats(data: Any) -> None:
    with pytest.raises(BadRequest, match="librechat, mem0, agent-memory-server, openclaw"):
        found_in(data)


def test_a_named_format_must_fit() -> None:
    with pytest.raises(BadRequest, match="`mem0`"):
        found_in(LIBRECHAT_ANSWER, Format.MEM0)


def test_bytes_that_are_no_text_are_refused_with_the_place() -> None:
    with pytest.raises(BadRequest, match="byte 1"):
        decode(b"a\xff")
    assert decode(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "memories",
                    "results",
                    "key",
                    "value",
                    "memory",
                    "text",
                    "id",
                    "userId",
                    "user_id",
                    "memagent",
                    "topics",
                    "categories",
                    "relations",
                    "metadata",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(jsons | st.text(max_size=60), st.sampled_from([None, *Format]))
def test_whatever_a_file_holds_it_is_read_or_refused(data: Any, form: Format | None) -> None:
    try:
        _, found = read(data, form, Wanted())
    except BadRequest:
        return
    assert all(isinstance(item.key, str) and isinstance(item.value, str) and item.key for item in found.items)


# -- into a store ------------------------------------------------------------------------------------------------------


async def test_what_comes_in_is_searched_unprotected_and_known_the_next_time(open_world: Any) -> None:
    async with open_world() as world:
        first = await world.memory.import_memories("juno", MEM0_ROWS)
        assert (len(first.taken), first.known, first.format) == (3, (), Format.MEM0)
        [alps] = [memory for memory in await world.memory.list("juno") if "Alps" in memory.value]
        assert (alps.protected, alps.searched) == (False, True)
        again = await world.memory.import_memories("juno", MEM0_ROWS)
        assert (again.taken, len(again.known)) == ((), 3)


async def test_a_key_that_was_made_here_gives_way_to_one_that_is_taken(open_world: Any) -> None:
    rows = [{"id": str(number), "memory": f"Lives in Graz {'now' * number}"} for number in range(2)]
    async with open_world() as world:
        await world.memory.put("juno", "lives_graz", "Juno lives there")
        report = await world.memory.import_memories("juno", [rows[0]])
        assert report.taken == ("lives_graz_2",)
        assert (await world.memory.get("juno", "lives_graz")).value == "Juno lives there"


async def test_a_rehearsal_says_what_the_import_then_does_and_changes_nothing(open_world: Any) -> None:
    async with open_world(extra="tokenLimit: 12\ncharLimit: 60") as world:
        data = decode(MARKDOWN)
        rehearsal = await world.memory.import_memories("juno", data, dry_run=True)
        assert await world.memory.list("juno") == ()
        report = await world.memory.import_memories("juno", data)
        assert (report.taken, report.known, report.refused) == (
            rehearsal.taken,
            rehearsal.known,
            rehearsal.refused,
        )
        assert report.taken
        assert {each["code"] for each in report.refused} == {"limit_exceeded", "not_a_memory"}
        assert (await world.memory.totals("juno")).tokens <= 12


async def test_what_waited_for_review_still_waits_after_a_move(open_world: Any) -> None:
    async with open_world() as world:
        await world.memory.put("juno", "tea", "oolong")
        exported = await world.memory.export("juno")
        exported["memories"][0]["trusted"] = False
        await world.memory.import_memories("kim", exported)
        assert [memory.key for memory in await world.memory.review("kim")] == ["tea"]


async def test_an_export_for_people_can_be_read_and_brought_back(open_world: Any) -> None:
    async with open_world() as world:
        await world.memory.put("juno", "tea", "Juno drinks oolong.\nEvery day.")
        text = await world.memory.export_markdown("juno")
        assert text == (
            "# What is remembered about juno\n\n- **tea**: Juno drinks oolong.\n  Every day. _(2026-03-02)_\n"
        )
        report = await world.memory.import_memories("kim", decode(text))
        assert (report.format, len(report.taken)) == (Format.OPENCLAW, 1)


async def test_keys_that_become_the_same_do_not_cover_each_other(open_world: Any) -> None:
    rows = [
        {"key": key, "value": f"about {key} {number}"}
        for number, key in enumerate(["Tea Time", "tea_time", "TEA-TIME"])
    ]
    async with open_world() as world:
        report = await world.memory.import_memories("juno", rows)
        assert report.taken == ("tea_time_2", "tea_time", "tea_time_3")
        assert (await world.memory.get("juno", "tea_time")).value == "about tea_time 1"


async def test_who_opted_out_gets_no_rehearsal_either(open_world: Any) -> None:
    async with open_world() as world:
        await world.memory.set_personalization("juno", on=False)
        for dry_run in (True, False):
            with pytest.raises(PersonalizationOff):
                await world.memory.import_memories("juno", MEM0_ROWS, dry_run=dry_run)


async def test_with_keys_in_the_configuration_an_import_without_keys_is_refused_item_by_item(
    open_world: Any,
) -> None:
    async with open_world(extra="validKeys: [Home, food]") as world:
        report = await world.memory.import_memories("juno", MEM0_ROWS)
        assert report.taken == ()
        assert sum(each["code"] == "invalid_key" for each in report.refused) == 3
        named = await world.memory.import_memories("juno", [{"key": "Home", "value": "Graz"}])
        assert named.taken == ("Home",)
