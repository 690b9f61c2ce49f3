"""`demo`: the main job on real parts: a chat that is remembered, then the seed's week of a cat called Mochi."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from memagent.cli import options
from memagent.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from memagent.config.endpoints import ModelTarget
    from memagent.llm import ChatModel
    from memagent.memory import Memory
    from memagent.service import Memagent

URL, KEY = "MEMORY_GATEWAY_URL", "MEMORY_GATEWAY_KEY"
"""The variables under which examples/librechat.yaml looks for its endpoint."""

UNHURRIED_MS = "5000"
"""The demo may run on a busy machine, and shows what is recalled rather than how fast."""

DAWN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
"""The demo's first morning: its days pass as fast as it likes."""


@click.command()
@click.option("--config", type=click.Path(path_type=Path), help="Another librechat.yaml than the example's.")
@click.option(
    "--conversation", type=click.Path(path_type=Path), help="Another conversation than the example's."
)
@click.option("--model", help="A model of litellm's to ask, such as openai/gpt-4o-mini.")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="Keep the memories here; otherwise they go afterwards.",
)
@click.pass_context
def demo(
    context: click.Context,
    *,
    config: Path | None,
    conversation: Path | None,
    model: str | None,
    data_dir: Path | None,
) -> None:
    """Play a conversation turn by turn, and show what was kept, refused, forgotten and recalled, and what it cost."""
    config = config or example("librechat.yaml")
    script = _conversation(conversation or example("conversation.yaml"))
    asyncio.run(_play(options.environ(context), config=config, script=script, model=model, data_dir=data_dir))


def example(name: str) -> Path:
    """An example: beside the package in a checkout, inside it when it is installed."""
    inside = Path(str(files("memagent"))) / "examples" / name
    return inside if inside.exists() else inside.parents[2] / "examples" / name


class Clock:
    """The demo's time: stands still until it is told to go on."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, step: timedelta) -> None:
        self.now += step


async def _play(
    environ: Mapping[str, str],
    *,
    config: Path,
    script: Mapping[str, Any],
    model: str | None,
    data_dir: Path | None,
) -> None:
    from memagent import wiring  # noqa: PLC0415  heavy
    from memagent.llm.gateway import Gateway  # noqa: PLC0415
    from memagent.report import demo as report  # noqa: PLC0415

    screen = options.console()
    clock = Clock(DAWN)
    async with AsyncExitStack() as opened:
        folder = data_dir or Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="memagent-demo-")))
        environ = {"MEMAGENT_DATA_DIR": str(folder), "MEMAGENT_RECALL_BUDGET_MS": UNHURRIED_MS, **environ}
        environ, played = await _endpoint(environ, script, model, opened)
        screen.print(report.opening(config=config, played=played, model=model, environ=environ, url=URL))
        models = _named(model, environ) if model else None
        with screen.status("starting Redis, loading the embedder and litellm…"):
            memory = await opened.enter_async_context(
                wiring.open(config, environ=environ, clock=clock, models=models)
            )
            await Gateway().warm()
        rows = await _chat(memory, clock, script)
        screen.print(report.turns(rows))
        screen.print(report.remembered(await memory.list(script["user"])))
        screen.print(report.week(await _week(memory, clock)))


async def _endpoint(
    environ: Mapping[str, str], script: Mapping[str, Any], model: str | None, opened: AsyncExitStack
) -> tuple[dict[str, str], bool]:
    """The environment with an endpoint in it: the configured one if it can be reached, else recorded answers on loopback."""
    given = dict(environ)
    if model or (given.get(URL) and given.get(KEY) and await _reachable(given[URL])):
        return given, False
    from memagent.llm.script import Script  # noqa: PLC0415
    from memagent.llm.scripted import ScriptedServer  # noqa: PLC0415

    rules = [{"user": turn["say"], "answers": turn["recorded"]} for turn in script["turns"]]
    server = await opened.enter_async_context(ScriptedServer(Script.from_data({"rules": rules})))
    return given | {URL: server.base_url, KEY: "recorded"}, True


async def _reachable(url: str) -> bool:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(parts.hostname, port), 2)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def _named(model: str, environ: Mapping[str, str]) -> Callable[[ModelTarget], ChatModel]:
    from dataclasses import replace  # noqa: PLC0415

    from memagent.llm.gateway import Gateway  # noqa: PLC0415

    gateway = Gateway()
    key = environ.get(f"{model.partition('/')[0].upper()}_API_KEY")
    return lambda target: gateway.model(replace(target, model=model, base_url=None, api_key=key, headers={}))


async def _chat(memory: Memagent, clock: Clock, script: Mapping[str, Any]) -> list[dict[str, Any]]:
    from memagent.memory import Message  # noqa: PLC0415
    from memagent.turn import Turn  # noqa: PLC0415

    history: list[Message] = []
    rows = []
    for number, said in enumerate(script["turns"], 1):
        history.append(Message("user", said["say"], id=f"m{number}"))
        turn = Turn(
            user=script["user"],
            conversation_id="demo",
            message_id=f"m{number}",
            messages=tuple(history),
            user_fields={"name": script["name"], "email": script["email"]},
        )
        before = await memory.context(turn)
        receipt = await memory.observe(turn, recalled=before.note)
        history.append(Message("assistant", said["answer"]))
        rows.append({"say": said["say"], "shows": said["shows"], "receipt": receipt.to_json()})
        clock.advance(timedelta(minutes=3))
    return rows


async def _week(memory: Memagent, clock: Clock) -> list[dict[str, Any]]:
    """The seed's table: saved, six days of other talk, a quiet week, one more day, and a question."""
    from memagent.memory import Scope, ScopeKind, Source  # noqa: PLC0415
    from memagent.service import hands  # noqa: PLC0415

    scope = Scope(ScopeKind.USER, "juno-week")
    await hands.put(memory.ports, scope, "pets", "Juno's cat is called Mochi", source=Source.AGENT)
    rows = [await _day(memory, scope, clock, day="the day it is saved", said=None)]
    for number in range(1, 7):
        clock.advance(timedelta(days=1))
        rows.append(
            await _day(memory, scope, clock, day=f"day {number} of other talk", said=OTHER_TALK[number - 1])
        )
    clock.advance(timedelta(days=7))
    rows.append(await _day(memory, scope, clock, day="after a quiet week", said=None))
    rows.append(
        await _day(memory, scope, clock, day="the next day of other talk", said="Which keyboard do you like?")
    )
    clock.advance(timedelta(days=1))
    rows.append(await _day(memory, scope, clock, day="a day later", said="How is Mochi doing these days?"))
    return rows


OTHER_TALK = (
    "Did you finish that racing game?",
    "The boss in level nine is unfair.",
    "Which headset should I buy?",
    "My router drops packets again.",
    "Let us queue for one more match.",
    "The new patch changed all the maps.",
)


async def _day(memory: Memagent, scope: Any, clock: Clock, *, day: str, said: str | None) -> dict[str, Any]:
    found = await memory.recall(scope.owner, said, commit=True) if said else None
    kept: Memory = (await memory.list(scope))[0]
    return {
        "date": clock.now.date().isoformat(),
        "day": day,
        "said": said or "",
        "counter": kept.unused_days,
        "dormant": kept.dormant,
        "tail": bool(found and found.tail),
        "prefix": bool(found and found.prefix),
        "score": found.note.matches[0]["score"] if found and found.note.matches else None,
    }


def _conversation(path: Path) -> Mapping[str, Any]:
    from memagent.config.document import parse, plain  # noqa: PLC0415

    try:
        document = parse(path.read_bytes(), str(path))
    except OSError as error:
        raise BadRequest(f"{path} cannot be read: {error.strerror}") from None
    script = plain(document.root) if document.root else None
    if not isinstance(script, dict) or not {"user", "name", "email", "turns"} <= script.keys():
        raise BadRequest(f"{path} is not a conversation: it needs `user`, `name`, `email` and `turns`")
    return script
