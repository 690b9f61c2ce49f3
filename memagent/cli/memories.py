"""`memories` and `preferences`: what a person does with what is remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memagent.cli import options, transfer

if TYPE_CHECKING:
    from pathlib import Path

    from memagent.memory import Scope
    from memagent.service import Memagent


@click.group()
def memories() -> None:
    """List, read, write, review, delete, export, import and undo memories; forget a user."""


@memories.command("list")
@options.scoped
def list_(context: click.Context, *, config: Path | None, scope: Scope, as_json: bool) -> None:
    """All memories, newest first."""
    from memagent.report import memories as report  # noqa: PLC0415  rich

    async def work(memory: Memagent) -> list[dict[str, Any]]:
        return list((await memory.export(scope))["memories"])

    options.show(options.with_memory(context, config, work), as_json=as_json, table=report.memories)


@memories.command()
@click.argument("key")
@options.scoped
def get(context: click.Context, *, config: Path | None, scope: Scope, as_json: bool, key: str) -> None:
    """One memory with the words it came from."""
    from memagent.report import memories as report  # noqa: PLC0415  rich
    from memagent.service.transfer import as_json as memory_json  # noqa: PLC0415

    async def work(memory: Memagent) -> dict[str, Any]:
        return memory_json(await memory.get(scope, key))

    options.show(options.with_memory(context, config, work), as_json=as_json, table=report.memory)


@memories.command("set")
@click.option("--tag", "tags", multiple=True, help="Visible only when this word, or #channel, is in sight.")
@click.argument("key")
@click.argument("value")
@options.scoped
def set_(
    context: click.Context,
    *,
    config: Path | None,
    scope: Scope,
    as_json: bool,
    tags: tuple[str, ...],
    key: str,
    value: str,
) -> None:
    """Write a memory by hand, which protects it from being forgotten."""
    from memagent.report import memories as report  # noqa: PLC0415  rich
    from memagent.service.transfer import as_json as memory_json  # noqa: PLC0415

    async def work(memory: Memagent) -> dict[str, Any]:
        return memory_json(await memory.put(scope, key, value, tags=tags))

    options.show(options.with_memory(context, config, work), as_json=as_json, table=report.memory)


@memories.command()
@click.argument("key")
@options.scoped
def delete(context: click.Context, *, config: Path | None, scope: Scope, as_json: bool, key: str) -> None:
    """Delete a memory; `undo` brings it back."""

    async def work(memory: Memagent) -> dict[str, Any]:
        await memory.forget(scope, key)
        return {"deleted": key}

    options.show(
        options.with_memory(context, config, work), as_json=as_json, table=lambda _: f"deleted {key}"
    )


@memories.command()
@click.option("--key", help="Only changes of this memory.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@options.scoped
def history(
    context: click.Context, *, config: Path | None, scope: Scope, as_json: bool, key: str | None, limit: int
) -> None:
    """What changed, newest first."""
    from memagent.report import memories as report  # noqa: PLC0415  rich
    from memagent.service.transfer import change_json  # noqa: PLC0415

    async def work(memory: Memagent) -> list[dict[str, Any]]:
        return [change_json(change) for change in await memory.history(scope, key=key, limit=limit)]

    options.show(options.with_memory(context, config, work), as_json=as_json, table=report.changes)


@memories.command()
@click.argument("change", required=False)
@options.scoped
def undo(
    context: click.Context, *, config: Path | None, scope: Scope, as_json: bool, change: str | None
) -> None:
    """Take back one CHANGE of the history, the newest if none is named."""
    from memagent.report import memories as report  # noqa: PLC0415  rich
    from memagent.service.transfer import change_json  # noqa: PLC0415

    async def work(memory: Memagent) -> list[dict[str, Any]]:
        return [change_json(await memory.undo(scope, change))]

    options.show(options.with_memory(context, config, work), as_json=as_json, table=report.changes)


@memories.command()
@options.scoped
def review(context: click.Context, *, config: Path | None, scope: Scope, as_json: bool) -> None:
    """What a tool or a quotation brought in: in no prompt until `accept`, gone with `delete`."""
    from memagent.report import memories as report  # noqa: PLC0415  rich
    from memagent.service.transfer import as_json as memory_json  # noqa: PLC0415

    async def work(memory: Memagent) -> list[dict[str, Any]]:
        return [memory_json(each) for each in await memory.review(scope)]

    options.show(options.with_memory(context, config, work), as_json=as_json, table=report.review)


@memories.command()
@click.argument("key")
@options.scoped
def accept(context: click.Context, *, config: Path | None, scope: Scope, as_json: bool, key: str) -> None:
    """Take a memory of the review for the user's own words."""
    from memagent.report import memories as report  # noqa: PLC0415  rich
    from memagent.service.transfer import as_json as memory_json  # noqa: PLC0415

    async def work(memory: Memagent) -> dict[str, Any]:
        return memory_json(await memory.accept(scope, key))

    options.show(options.with_memory(context, config, work), as_json=as_json, table=report.memory)


for command in (transfer.export, transfer.import_, transfer.forget_me):
    memories.add_command(command)


@click.group()
def preferences() -> None:
    """Read and set a user's own switches."""


@preferences.command("get")
@options.config
@options.user
@options.as_json
@click.pass_context
def get_preferences(context: click.Context, *, config: Path | None, user: str, as_json: bool) -> None:
    """Whether memory is switched on for the user."""

    async def work(memory: Memagent) -> dict[str, bool]:
        return {"memories": await memory.personalization(user)}

    options.show(options.with_memory(context, config, work), as_json=as_json, table=switch)


@preferences.command("set")
@options.config
@options.user
@options.as_json
@click.argument("name", type=click.Choice(["memories"]))
@click.argument("value", type=click.Choice(["on", "off"]))
@click.pass_context
def set_preferences(
    context: click.Context, *, config: Path | None, user: str, as_json: bool, name: str, value: str
) -> None:
    """Switch memory on or off. What is remembered stays until it is deleted."""

    async def work(memory: Memagent) -> dict[str, bool]:
        await memory.set_personalization(user, on=value == "on")
        return {name: await memory.personalization(user)}

    options.show(options.with_memory(context, config, work), as_json=as_json, table=switch)


def switch(value: dict[str, bool]) -> str:
    return f"memories: {'on' if value['memories'] else 'off'}"
