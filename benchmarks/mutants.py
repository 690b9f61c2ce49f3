"""Broken configurations, made from sound ones by a seed: the same seed makes the same mutants."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from memagent.config.librechat.definitions import DEFINITIONS
from memagent.config.librechat.root import ROOT
from memagent.config.zod import (
    Both,
    Choice,
    Default,
    Lazy,
    List,
    Literal,
    Needed,
    Nullable,
    Number,
    Object,
    Piped,
    Record,
    Refined,
    Schema,
    Tagged,
    Text,
    Transformed,
    Union,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

SCALARS = (
    "yes", "no", "on", "off", "y", "n", "true", "True", "TRUE", "false", "~", "null", "Null", "", "017", "08", "09.5",
    "0o17", "0o8", "0x1F", "-0x1F", "0b11", "1_000", "0.1_5", "0x_1F", "1e3", "12e03", "1.5e3", ".5", "1.", "+1", "-0",
    "1:30", "190:20:30", ".inf", "-.Inf", ".NaN", "2024-01-01", "2024-13-45", "2024-01-01T10:00:00Z", "1.2.1", "1.2",
    '"1.2"', "99999999999999999999", "!!binary aGk=", "!!set {x, y}", "!!omap [a: 1]", "!foo x", '!!null ""', "<<", "=",
    "[]", "{}", "[1]", "[a]", "{a: 1}", "[null]", "@x", "`x`", "%x", "a: b", "*nothing", "&a x", '"\\q"', '"', "'",
    "-5", "0", "1", "3", "1000000000", "2.5", "-1.5", "'3'", "'true'", "x", "${UNSET}", "${A}", "${A}${B}", "x${A}y",
    "http://localhost:11434", "ws://a.b/", "https://exa mple", "localhost:11434", "[::1]:80", "8.8.8.8:53", "10.0.0.1:80",
    "fe80::1", "openAI", "custom", "{{ template }}", "|", ">-", "# nothing", "[a, b", "{a: b", "(?=x)", "[z-a]", "a{1001}",
)  # fmt: skip

PAIR = re.compile(r"^(?P<lead>[ \t]*(?:- +)*)(?P<key>[\w.$-]+):(?P<value>.*)$")


def mutate(text: str, rng: random.Random) -> str:
    """The text with one to three small faults."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice(MUTATIONS)(lines, rng)
    return "\n".join(lines)


def _some(
    lines: list[str], rng: random.Random, pattern: re.Pattern[str] = PAIR
) -> tuple[int, re.Match[str]] | None:
    places = [(at, match) for at, line in enumerate(lines) if (match := pattern.match(line))]
    return rng.choice(places) if places else None


def _drop(lines: list[str], rng: random.Random) -> None:
    if lines:
        start = rng.randrange(len(lines))
        del lines[start : start + rng.choice((1, 1, 1, 2, 5))]


def _drop_key(lines: list[str], rng: random.Random) -> None:
    if found := _some(lines, rng):
        del lines[found[0]]


def _rename(lines: list[str], rng: random.Random) -> None:
    if found := _some(lines, rng):
        at, match = found
        key = rng.choice(
            (
                match["key"] + "x",
                match["key"].lower(),
                match["key"].upper(),
                "name",
                "url",
                "1",
                "null",
                "reason",
            )
        )
        lines[at] = f"{match['lead']}{key}:{match['value']}"


def _retype(lines: list[str], rng: random.Random) -> None:
    if found := _some(lines, rng):
        at, match = found
        lines[at] = f"{match['lead']}{match['key']}: {rng.choice(SCALARS)}"


def _null(lines: list[str], rng: random.Random) -> None:
    if found := _some(lines, rng):
        at, match = found
        lines[at] = f"{match['lead']}{match['key']}:"


def _duplicate(lines: list[str], rng: random.Random) -> None:
    if found := _some(lines, rng):
        at, _ = found
        lines.insert(rng.choice((at, at + 1, min(len(lines), at + rng.randrange(20)))), lines[at])


def _indent(lines: list[str], rng: random.Random) -> None:
    if lines:
        at = rng.randrange(len(lines))
        change = rng.choice(("  ", " ", "\t", "    ", -1, -2, -4))
        lines[at] = change + lines[at] if isinstance(change, str) else lines[at][-change:]


def _unknown(lines: list[str], rng: random.Random) -> None:
    if found := _some(lines, rng):
        at, match = found
        lines.insert(at, " " * len(match["lead"]) + f"unknownKey{rng.randrange(3)}: {rng.choice(SCALARS)}")


def _swap(lines: list[str], rng: random.Random) -> None:
    one, two = _some(lines, rng), _some(lines, rng)
    if one and two:
        lines[one[0]] = f"{one[1]['lead']}{one[1]['key']}:{two[1]['value']}"
        lines[two[0]] = f"{two[1]['lead']}{two[1]['key']}:{one[1]['value']}"


def _item(lines: list[str], rng: random.Random) -> None:
    if found := _some(lines, rng, re.compile(r"^(?P<lead>[ \t]*)- (?P<value>.*)$")):
        at, match = found
        lines[at] = f"{match['lead']}- {rng.choice(SCALARS)}"


def _character(lines: list[str], rng: random.Random) -> None:
    if lines and (line := lines[at := rng.randrange(len(lines))]):
        place = rng.randrange(len(line))
        new = rng.choice((":", "#", "'", '"', "[", "}", " ", "\t", "-", "&", "", "{{ x }}", "\x07"))
        lines[at] = line[:place] + new + line[place + rng.randrange(2) :]


MUTATIONS: tuple[Callable[[list[str], random.Random], None], ...] = (
    _drop, _drop_key, _rename, _rename, _retype, _retype, _retype, _null, _duplicate, _indent, _unknown, _swap, _item, _character,
)  # fmt: skip


def invent(rng: random.Random) -> str:
    """A file written from the schema itself, some of its values wrong or none: every key gets its turn."""
    shape = rng.random()
    if shape < 0.15:
        return json.dumps(_parameters(rng))
    if shape < 0.25:
        return json.dumps(_addresses(rng))
    wrong = rng.choice((0.0, 0.005, 0.03))
    names = rng.sample(list(ROOT.fields), rng.randint(1, 4))
    value: dict[str, Any] = {"version": "1.3.17"} if rng.random() < 0.95 else {}
    for name in names:
        value[name] = _value(ROOT.fields[name], rng, wrong, 0)
    return json.dumps(value)


def _parameters(rng: random.Random) -> dict[str, Any]:
    """Custom endpoints whose parameters the schema takes, for the checks behind it."""
    target = rng.choice((*DEFINITIONS, "nobody"))
    known = (
        [*DEFINITIONS.get(target, {"x": 1}), "x"]
        if rng.random() < 0.1
        else list(DEFINITIONS.get(target, {"x": 1}))
    )
    definitions = []
    for _ in range(rng.randint(0, 3)):
        definition = {"key": rng.choice(known)}
        for name, choices in {
            "type": ("number", "boolean", "string", "enum", "array"),
            "component": ("input", "textarea", "slider", "checkbox", "switch", "dropdown", "combobox", "tags"),
            "default": (1, 0, -3, 0.5, 5000, "", "low", "5", "x", True, False, [], ["a"], ["a", "b", "c", "d", "e"], ["1"], ["1", "2"]),
            "options": ([], ["a"], ["low", "high"], ["a", "b", "c"]),
            "range": ({"min": 0, "max": 10}, {"min": 5, "max": 1}, {"min": 0, "max": 9, "positiveMin": 3}, {"min": -1, "max": 4, "step": 1}),
            "enumMappings": ({}, {"low": 1, "high": "x"}, {"a": True, "b": 1, "c": 2}),
            "minText": (0, 5, -1), "maxText": (3, 9, -2), "minTags": (0, 2), "maxTags": (1, 4), "columns": (1, 4),
        }.items():  # fmt: skip
            if rng.random() < 0.2:
                definition[name] = rng.choice(choices)
        definitions.append(definition)
    endpoint: dict[str, Any] = {"name": rng.choice(("a", "OpenRouter", "b"))}
    if rng.random() < 0.9:
        endpoint["customParams"] = {"defaultParamsEndpoint": target, "paramDefinitions": definitions}
        if rng.random() < 0.3:
            del endpoint["customParams"][rng.choice(("defaultParamsEndpoint", "paramDefinitions"))]
    return {"version": "1", "endpoints": {"custom": [endpoint]}}


PIECES = ("http", "https", "ws", "wss", "ftp", "socks5", "file", "mailto", ":", "//", "/", "\\", "a", "exa mple", "example.com", "localhost", "127.0.0.1",
          "[::1]", "[::g]", "256.1.1.1", "1.2.3", "0x7f.1", "::1", "fe80::1", "fc00::", "2002:a00:1::", "64:ff9b::a00:1", "2001::f5ff:fffe", "::ffff:10.0.0.1",
          "8.8.8.8", "10.1.2.3", "172.16.0.1", "100.64.1.1", "192.0.0.8", "198.18.0.1", "224.0.0.1", ":80", ":0", ":65536", ":99999", ":x", "@", "user:pw@",
          "?q=1", "#f", "%20", "%zz", "é", "xn--a", "日本", ".", "..", "-", "_", " ", "\t", "${A}", "${", "}", "", "[", "]", "|", "^", "<", "*")  # fmt: skip


def _addresses(rng: random.Random) -> dict[str, Any]:
    """URLs and addresses of all kinds, where the schema looks at them."""

    def made() -> str:
        return "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 6)))

    def url() -> str:
        return rng.choice(("http://", "https://", "ws://", "http:", "")) + made()

    server = {"type": rng.choice(("sse", "websocket", "http", "streamable-http")), "url": url()}
    if rng.random() < 0.3:
        server["proxy"] = url()
    if rng.random() < 0.3:
        server["oauth"] = {"token_url": url(), "client_id": "a", "client_secret": "b"}
    places: dict[str, Any] = {
        "mcpServers": {"a": server},
        "actions": {"allowedAddresses": [made(), made() + ":80"]},
        "cloudfront": {"domain": url(), "cookieDomain": made()},
        "endpoints": {"agents": {
            "eventDriven": {"selfUrl": url()},
            "remoteApi": {"auth": {"oidc": {"issuer": url(), "enabled": True, "audience": "a"}}},
            "statefulCodeSessions": {"allowedEnvironments": ["user"], "environments": [{
                "id": "a", "name": "b", "type": "attached", "baseURL": url(), "default": True,
                "pairing": {"workerId": "w", "tokenEnv": "T"},
            }]},
        }},
    }  # fmt: skip
    chosen = rng.sample(list(places), rng.randint(1, 3))
    return {"version": "1", **{name: places[name] for name in chosen}}


WORDS = ("a", "openAI", "agents", "${UNSET}", "http://a.b/c", "https://x.y", "wss://q.r", "localhost:80", "8.8.8.8:1", "", " ",
         "1", "x" * 70, "main", "a/b", "..", "user", "name", "[a-z]+", "(?<=a)b", "\\1", "image/.*", ".example.com", "512",
         "${TOKEN}", "5f4dcc3b5aa765d61d8327de", "$", "é", "temperature", "promptCache", "anthropic", "custom", "a b", "a,b")  # fmt: skip


def _anything(rng: random.Random) -> Any:
    return rng.choice(
        (
            None,
            True,
            False,
            0,
            1,
            -1,
            2.5,
            1e21,
            "",
            "x",
            [],
            {},
            [1],
            ["a"],
            {"a": 1},
            {"a": None},
            [None],
            [[]],
        )
    )


def _value(schema: Schema, rng: random.Random, wrong: float, depth: int) -> Any:  # noqa: PLR0911 - one for each kind
    if rng.random() < wrong:
        return _anything(rng)
    match schema:
        case (
            Default(inner=inner)
            | Needed(inner=inner)
            | Refined(inner=inner)
            | Transformed(inner=inner)
            | Piped(inner=inner)
        ):
            return _value(inner, rng, wrong, depth)
        case Nullable(inner=inner):
            return None if rng.random() < 0.3 else _value(inner, rng, wrong, depth)
        case Object(fields=fields):
            return _object(fields, rng, wrong, depth)
        case Both(left=left, right=right):
            one, two = _value(left, rng, wrong, depth), _value(right, rng, wrong, depth)
            return {**one, **two} if isinstance(one, dict) and isinstance(two, dict) else one
        case Union(options=options):
            return _value(rng.choice(options), rng, wrong, depth + 1)
        case Tagged(tag=tag, options=options):
            kind = rng.choice(list(options))
            value = _value(options[kind], rng, wrong, depth)
            return {**value, tag: kind} if isinstance(value, dict) and rng.random() < 0.9 else value
        case Record(value=inner):
            return {
                rng.choice((*WORDS, "10", "2", "web_search")): _value(inner, rng, wrong, depth + 1)
                for _ in range(rng.randint(0, 3))
            }
        case List(item=inner):
            return [_value(inner, rng, wrong, depth + 1) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
        case Lazy():
            return _anything(rng) if depth > 6 else _value(schema.make(), rng, wrong, depth + 1)
        case _:
            return _leaf(schema, rng, wrong)


def _object(fields: dict[str, Schema], rng: random.Random, wrong: float, depth: int) -> dict[str, Any]:
    keep = rng.choice((0.2, 0.5, 0.9)) if depth > 1 or len(fields) < 12 else 0.2
    value = {
        name: _value(field, rng, wrong, depth + 1)
        for name, field in fields.items()
        if rng.random() < (1 - wrong if isinstance(field, Needed) else keep)
    }
    if rng.random() < 2 * wrong:
        value[rng.choice(("unknown", "10", "2", "é", "__proto__", "constructor"))] = _anything(rng)
    return value


def _leaf(schema: Schema, rng: random.Random, wrong: float) -> Any:
    match schema:
        case Choice(values=values):
            return rng.choice(values) if rng.random() >= 2 * wrong else rng.choice(WORDS)
        case Literal(value=value):
            return value if rng.random() >= 2 * wrong else rng.choice(WORDS)
        case Number(min=low, above=above, max=high):
            bounds = [bound for bound in (low, above, high) if bound is not None]
            near = [bound + step for bound in bounds for step in (-1, 0, 1, 0.5)]
            return rng.choice([*near, 1, 10, 100])
        case Text():
            return rng.choice(WORDS)
        case _:
            return rng.choice((True, False, None, "x"))
