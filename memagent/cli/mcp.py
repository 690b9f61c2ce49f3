"""`mcp`: memory as tools for a program that starts this one and talks to it over stdin and stdout."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from memagent.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@click.command()
@options.config
@options.user
@click.pass_context
def mcp(context: click.Context, *, config: Path | None, user: str) -> None:
    """Offer one user's memory over MCP on stdin and stdout; over HTTP, `memagent serve` offers it at /mcp."""
    asyncio.run(_serve(options.environ(context), config, user))


async def _serve(environ: Mapping[str, str], config: Path | None, user: str) -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415  heavy

    from memagent import wiring  # noqa: PLC0415  heavy
    from memagent.api.auth import OWN, Principal  # noqa: PLC0415
    from memagent.api.mcp import build  # noqa: PLC0415

    async with wiring.open(config, environ=environ) as memory, stdio_server() as (read, write):
        server = build(memory, fixed=Principal(user, OWN, "stdio"))
        await server.run(read, write, server.create_initialization_options())
