"""`turn`, `recall` and `why`: what happened, or would happen, with one message."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from memagent.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from memagent.service import Memagent


@click.command()
@options.config
@click.argument("file", type=click.File("rb"))
@click.pass_context
def turn(context: click.Context, config: Path | None, file: BinaryIO) -> None:
    """Play one turn from a JSON FILE (`-` for stdin) and print its receipt.

    The turn is recalled, its context rendered, the model asked, and what it remembers applied.
    """
    from memagent.turn import parse_turn  # noqa: PLC0415  pydantic

    given = parse_turn(file.read())

    async def work(memory: Memagent) -> dict[str, Any]:
        before = await memory.context(given)
        receipt = await memory.observe(given, recalled=before.note)
        return {**receipt.to_json(), "context": {"prefix": before.prefix, "tail": before.tail}}

    options.show(options.with_memory(context, config, work), as_json=True, table=str)


@click.command()
@options.config
@options.user
@options.agent
@click.option("--shared", multiple=True, metavar="NAME", help="A shared scope in reach; may be repeated.")
@click.option(
    "--explain", is_flag=True, help="Every candidate: score, parts, floor, and why it counted or not."
)
@click.option(
    "--sources",
    metavar="NAMES",
    help="Ask these only: memories, turns, notes, with commas. As a turn would if not given.",
)
@click.option("--count", is_flag=True, help="Count this as a turn of today; otherwise nothing changes.")
@options.as_json
@click.argument("text")
@click.pass_context
def recall(
    context: click.Context,
    *,
    config: Path | None,
    user: str,
    agent: str,
    shared: tuple[str, ...],
    explain: bool,
    sources: str | None,
    count: bool,
    as_json: bool,
    text: str,
) -> None:
    """Show what a message would bring back."""
    from memagent.report import memories as report  # noqa: PLC0415  rich

    asked = None if sources is None else [name.strip() for name in sources.split(",") if name.strip()]

    async def work(memory: Memagent) -> dict[str, Any]:
        found = await memory.recall(user, text, agent=agent, shared=shared, commit=count, sources=asked)
        return asdict(replace(found, recalled=None))

    found = options.with_memory(context, config, work)
    options.show(found, as_json=as_json, table=lambda value: report.recalled(value, explain=explain))


@click.command()
@options.config
@options.agent
@options.as_json
@click.argument("user")
@click.argument("message_id")
@click.pass_context
def why(
    context: click.Context, *, config: Path | None, agent: str, as_json: bool, user: str, message_id: str
) -> None:
    """Tell what memory did with one message of USER, as a story."""
    from memagent.report import story  # noqa: PLC0415  rich

    async def work(memory: Memagent) -> dict[str, Any]:
        return dict(await memory.why(options.scope_option(user, agent, ""), message_id))

    options.show(options.with_memory(context, config, work), as_json=as_json, table=story.told)
