"""`memories` and `preferences`: what a person does with what is remembered."""

from __future__ import annotations

import json
from functools import update_wrapper, wraps
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from memagent.cli import options
from memagent.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memagent.memory import Scope
    from memagent.service import Memagent


@click.group()
def memories() -> None:
    """List, read, write, delete, export, import and undo memories."""


def scoped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--config`, `--user`, `--agent`, `--shared` and `--json`; it gets the scope they name."""

    @wraps(command)
    def wrapped(context: click.Context, /, *, user: str, agent: str, shared: str, **rest: Any) -> None:
        command(context, scope=options.scope_option(user, agent, shared), **rest)

    for option in (options.as_json, options.shared, options.agent, options.user, options.config):
        option(wrapped)
    passed: Callable[..., None] = click.pass_context(wrapped)
    return update_wrapper(passed, wrapped)


@memories.command("list")
@scoped
def list_(context: click.Context, *, config: Path | None, scope: Scope, as_json: bool) -> None:
    """All memories, newest first."""
    from memagent.report import memories as report  # noqa: PLC0415  rich

    async def work(memory: Memagent) -> list[dict[str, Any]]:
        return list((await memory.export(scope))["memories"])

    options.show(options.with_memory(context, config, work), as_json=as_json, table=report.memories)


@memories.command()
@click.argument("key")
@scoped
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
@scoped
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
@scoped
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
@scoped
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
@scoped
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
@scoped
def export(context: click.Context, *, config: Path | None, scope: Scope, as_json: bool) -> None:  # noqa: ARG001  always JSON
    """Everything remembered, as JSON on stdout."""

    async def work(memory: Memagent) -> dict[str, Any]:
        return await memory.export(scope)

    options.show(options.with_memory(context, config, work), as_json=True, table=str)


@memories.command("import")
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@click.argument("file", type=click.File("rb"))
@scoped
def import_(
    context: click.Context, *, config: Path | None, scope: Scope, as_json: bool, dry_run: bool, file: BinaryIO
) -> None:
    """Bring in memories from a JSON FILE that `export` wrote (`-` for stdin)."""
    from memagent.report import memories as report  # noqa: PLC0415  rich

    try:
        data = json.loads(file.read())
    except ValueError:
        raise BadRequest(
            f"{file.name} is not JSON: give a file that `memagent memories export` wrote"
        ) from None

    async def work(memory: Memagent) -> dict[str, Any]:
        return (await memory.import_memories(scope, data, dry_run=dry_run)).to_json()

    options.show(options.with_memory(context, config, work), as_json=as_json, table=report.imported)


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
