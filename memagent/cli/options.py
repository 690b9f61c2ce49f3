"""Options that several commands share, and the opening of memory for one command."""

from __future__ import annotations

import asyncio
import json
from functools import update_wrapper, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from rich.console import Console, RenderableType

    from memagent.memory import Scope
    from memagent.service import Memagent

Result = TypeVar("Result")

config = click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="The librechat.yaml; MEMAGENT_CONFIG or ./librechat.yaml if not given.",
)
user = click.option("--user", required=True, metavar="ID", help="Whose memory.")
agent = click.option(
    "--agent", default="", metavar="ID", help="The partition of an agent with its own memory."
)
shared = click.option(
    "--shared", default="", metavar="NAME", help="A shared scope instead of the user's own."
)
as_json = click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")


def scope_option(user: str, agent: str, shared: str) -> Scope:
    """The scope that `--user`, `--agent` and `--shared` name together."""
    from memagent.memory import Scope, ScopeKind  # noqa: PLC0415  keeps `memagent validate` light

    return Scope(ScopeKind.SHARED, shared) if shared else Scope(ScopeKind.USER, user, agent)


def scoped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--config`, `--user`, `--agent`, `--shared` and `--json`; it gets the scope they name."""

    @wraps(command)
    def wrapped(context: click.Context, /, *, user: str, agent: str, shared: str, **rest: Any) -> None:
        command(context, scope=scope_option(user, agent, shared), **rest)

    for option in (as_json, shared, agent, user, config):
        option(wrapped)
    passed: Callable[..., None] = click.pass_context(wrapped)
    return update_wrapper(passed, wrapped)


def with_memory(
    context: click.Context, config: Path | None, work: Callable[[Memagent], Awaitable[Result]]
) -> Result:
    """Open memory for this command's environment, do the work, close it."""
    from memagent import wiring  # noqa: PLC0415  heavy: Redis, models

    async def run() -> Result:
        async with wiring.open(config, environ=environ(context)) as memory:
            return await work(memory)

    return asyncio.run(run())


def environ(context: click.Context) -> Mapping[str, str]:
    """The environment of this command line: the process's, or the one a test handed in as the context object."""
    found: Mapping[str, str] = context.find_root().obj
    return found


def show(value: Any, *, as_json: bool, table: Callable[[Any], RenderableType]) -> None:
    """Print a result as JSON or as a table."""
    if as_json:
        click.echo(json.dumps(value, ensure_ascii=False, indent=2))
    else:
        console().print(table(value))


def console() -> Console:
    from rich.console import Console  # noqa: PLC0415  only for tables

    return Console(highlight=False)
