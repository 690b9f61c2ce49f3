"""`sessions`: the conversations of an agent, listed, shown, reset, compacted, cleaned up and exported."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from functools import update_wrapper, wraps
from typing import TYPE_CHECKING, Any

import click

from memagent.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memagent.service import Memagent

BYTES_PER_MB = 1024 * 1024


@click.group()
def sessions() -> None:
    """List, show, reset, compact, clean up and export sessions."""


def of_agent(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--agent` and `--json`; it gets the agent's folder of sessions."""

    @wraps(command)
    def wrapped(context: click.Context, /, *, agent: str, **rest: Any) -> Any:
        from memagent.config.environment import load_environment  # noqa: PLC0415  pydantic
        from memagent.sessions.keys import agent_id  # noqa: PLC0415

        data = load_environment(options.environ(context)).data_dir
        return command(context, folder=data / "sessions" / agent_id(agent), **rest)

    options.as_json(wrapped)
    click.option("--agent", default="main", show_default=True, metavar="ID", help="Whose sessions.")(wrapped)
    passed: Callable[..., Any] = click.pass_context(wrapped)
    return update_wrapper(passed, wrapped)


@sessions.command("list")
@click.option("--archived", is_flag=True, help="Sessions that were reset, compacted or cleaned up.")
@of_agent
def list_(context: click.Context, *, folder: Path, as_json: bool, archived: bool) -> None:  # noqa: ARG001  every command's
    """The sessions, the latest used first."""
    from memagent.report import sessions as report  # noqa: PLC0415  rich
    from memagent.sessions import desk  # noqa: PLC0415

    if archived:
        options.show(desk.archived(folder), as_json=as_json, table=report.archived)
    else:
        options.show(asyncio.run(desk.listed(folder)), as_json=as_json, table=report.sessions)


@sessions.command()
@click.argument("session")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N messages.")
@of_agent
def show(context: click.Context, *, folder: Path, as_json: bool, session: str, last: int | None) -> None:  # noqa: ARG001
    """One SESSION, by its key or its id; archived ones by their id."""
    from memagent.report import sessions as report  # noqa: PLC0415  rich
    from memagent.sessions import desk  # noqa: PLC0415

    found = asyncio.run(desk.shown(folder, session))
    found["messages"] = found["messages"][-last:] if last else found["messages"]
    options.show(found, as_json=as_json, table=report.session)


@sessions.command()
@click.argument("session")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "json", "markdown"]),
    default="markdown",
    show_default=True,
)
@of_agent
def export(context: click.Context, *, folder: Path, as_json: bool, session: str, form: str) -> None:  # noqa: ARG001
    """One SESSION on stdout: as Markdown, as JSON, or its transcript byte for byte."""
    from memagent.report import sessions as report  # noqa: PLC0415  rich
    from memagent.sessions import desk  # noqa: PLC0415

    if form == "jsonl" and not as_json:
        click.echo(asyncio.run(desk.transcript(folder, session)), nl=False)
        return
    found = asyncio.run(desk.shown(folder, session))
    if form == "json" or as_json:
        click.echo(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        click.echo(report.markdown(found), nl=False)


@sessions.command()
@click.argument("key")
@click.option("--off", is_flag=True, help="Let it be cleaned up again.")
@of_agent
def pin(context: click.Context, *, folder: Path, as_json: bool, key: str, off: bool) -> None:  # noqa: ARG001
    """Keep the session of KEY from ever being cleaned up."""
    from memagent.sessions import desk  # noqa: PLC0415

    done = asyncio.run(desk.pinned(folder, key, on=not off))
    options.show(done, as_json=as_json, table=lambda _: f"{key} is {'no longer ' if off else ''}pinned")


@sessions.command()
@click.argument("key")
@options.config
@click.option(
    "--user",
    metavar="ID",
    help="Learn as this user's what the session is about to lose; needs a configuration.",
)
@of_agent
def reset(
    context: click.Context, *, folder: Path, as_json: bool, key: str, config: Path | None, user: str | None
) -> None:
    """End the session of KEY and begin a new one; the old transcript is archived."""
    from memagent.sessions import desk  # noqa: PLC0415

    if user is None:
        done = asyncio.run(desk.reset(folder, key))
    else:
        done = options.with_memory(
            context, config, lambda memory: desk.reset(folder, key, sessions=_bound(memory, user, folder))
        )
    options.show(done, as_json=as_json, table=lambda _: f"{key} begins anew as {done['sessionId']}")


@sessions.command()
@click.argument("key")
@options.config
@options.user
@click.option("--instructions", default="", metavar="TEXT", help="What the summary should heed.")
@of_agent
def compact(
    context: click.Context,
    *,
    folder: Path,
    as_json: bool,
    key: str,
    config: Path | None,
    user: str,
    instructions: str,
) -> None:
    """Summarise the session of KEY with the memory agent's model, after it has learned what is worth keeping."""
    from memagent.report import sessions as report  # noqa: PLC0415  rich

    async def work(memory: Memagent) -> dict[str, Any]:
        done = await _bound(memory, user, folder).compact(key, instructions=instructions)
        return {
            "status": str(done.status),
            "reason": done.reason,
            "before": done.before,
            "after": done.after,
            "sessionId": done.session_id,
            "notice": done.notice,
        }

    done = options.with_memory(context, config, work)
    options.show(done, as_json=as_json, table=report.compaction)
    if done["status"] == "failed":
        context.exit(2)


@sessions.command()
@click.option("--apply", is_flag=True, help="Carry it out; otherwise it is only shown.")
@click.option(
    "--days", type=click.IntRange(1), default=30, show_default=True, help="Unused for longer than this."
)
@click.option(
    "--cap", type=click.IntRange(0), default=500, show_default=True, help="Most sessions; 0 is without limit."
)
@click.option("--budget-mb", type=click.IntRange(1), metavar="MB", help="Largest size of the folder.")
@click.option(
    "--active", multiple=True, metavar="KEY", help="A session in use, never to go; may be repeated."
)
@click.option("--groups", is_flag=True, help="Groups and threads too.")
@of_agent
def cleanup(context: click.Context, *, folder: Path, as_json: bool, apply: bool, **rules: Any) -> None:  # noqa: ARG001
    """Find sessions nobody has opened for long and files nobody names; with --apply, archive them."""
    from memagent.report import sessions as report  # noqa: PLC0415  rich
    from memagent.sessions import desk  # noqa: PLC0415
    from memagent.sessions.cleanup import CleanupSettings  # noqa: PLC0415

    settings = CleanupSettings(
        unused_for=timedelta(days=rules["days"]),
        cap=rules["cap"] or None,
        budget_bytes=rules["budget_mb"] * BYTES_PER_MB if rules["budget_mb"] else None,
        protect_shared=not rules["groups"],
    )
    done = asyncio.run(desk.cleaned(folder, settings, active=rules["active"], apply=apply))
    options.show(done, as_json=as_json, table=report.cleanup)


def _bound(memory: Memagent, user: str, folder: Path) -> Any:
    from memagent.service.sessions import open_sessions  # noqa: PLC0415

    return open_sessions(memory, user, agent=folder.name)
