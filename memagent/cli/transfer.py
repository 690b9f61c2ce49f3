"""`memories export`, `import` and `forget-me`: everything out, in, or gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

import click

from memagent.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from memagent.memory import Scope
    from memagent.service import Memagent

FORMATS = ("auto", "librechat", "mem0", "agent-memory-server", "openclaw", "memagent")


@click.command()
@click.option("--format", "form", type=click.Choice(["json", "markdown"]), default="json", show_default=True)
@options.scoped
def export(context: click.Context, *, config: Path | None, scope: Scope, as_json: bool, form: str) -> None:  # noqa: ARG001  JSON by default
    """Everything remembered, on stdout; `import` takes the JSON back."""

    async def work(memory: Memagent) -> Any:
        return await (memory.export_markdown(scope) if form == "markdown" else memory.export(scope))

    exported = options.with_memory(context, config, work)
    if form == "markdown":
        click.echo(exported, nl=False)
    else:
        options.show(exported, as_json=True, table=str)


@click.command("import")
@click.option(
    "--from", "source", type=click.Choice(FORMATS), default="auto", show_default=True, help="The format."
)
@click.option(
    "--owner", metavar="ID", help="Whose memories, as FILE names them, if it holds several people's."
)
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@click.argument("file", type=click.File("rb"))
@options.scoped
def import_(
    context: click.Context,
    *,
    config: Path | None,
    scope: Scope,
    as_json: bool,
    source: str,
    owner: str | None,
    dry_run: bool,
    file: BinaryIO,
) -> None:
    """Bring in memories from FILE (`-` for stdin); what does not fit is named with its reason, never cut.

    FILE is an export of memagent, LibreChat's collection of memories or its API's answer, mem0's `get_all`, records of
    Redis agent-memory-server, or OpenClaw's MEMORY.md.
    """
    from memagent.report import memories as report  # noqa: PLC0415  rich
    from memagent.service.imports import Format, decode  # noqa: PLC0415

    data = decode(file.read())

    async def work(memory: Memagent) -> dict[str, Any]:
        named = None if source == "auto" else Format(source)
        found = await memory.import_memories(scope, data, source=named, owner=owner, dry_run=dry_run)
        return found.to_json()

    options.show(options.with_memory(context, config, work), as_json=as_json, table=report.imported)


@click.command("forget-me")
@options.config
@options.user
@options.as_json
@click.option("--preferences", is_flag=True, help="The user's switches too: memory is on again for them.")
@click.confirmation_option(prompt="Everything that is remembered of this user goes for good. Go on?")
@click.pass_context
def forget_me(
    context: click.Context, *, config: Path | None, user: str, as_json: bool, preferences: bool
) -> None:
    """Erase everything of a user, with a report of what went and what remains where."""
    from memagent.report import memories as report  # noqa: PLC0415  rich
    from memagent.store.queues import Queues  # noqa: PLC0415  Redis
    from memagent.store.redis import RedisStore  # noqa: PLC0415  Redis
    from memagent.turns.erasure import erase_user  # noqa: PLC0415

    async def work(memory: Memagent) -> dict[str, Any]:
        store = memory.ports.store
        if isinstance(store, RedisStore):
            queues = Queues(store.client, prefix=store.prefix)
            erasure = await erase_user(memory, queues, user, preferences=preferences)
        else:
            erasure = await memory.erase_user(user, preferences=preferences)
        return erasure.to_json()

    options.show(options.with_memory(context, config, work), as_json=as_json, table=report.erased)
