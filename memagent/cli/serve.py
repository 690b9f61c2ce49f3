"""`serve`, `worker`, `key`, `link`: running the service, and letting others in."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from typing import TYPE_CHECKING

import click

from memagent.cli import ExitCode, options
from memagent.errors import BadRequest, ConfigUnusable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from socket import socket

    from fastapi import FastAPI

log = logging.getLogger("memagent.serve")

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
KEEP_ALIVE_S = 15
HEADERS_BYTES = 32_768


@click.command()
@options.config
@click.option("--host", help="Where to listen; MEMAGENT_HOST if not given.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Where to listen; MEMAGENT_PORT if not given.")
@click.option("--user", metavar="ID", help="Serve one person, who needs no credential; on loopback only.")
@click.option(
    "--worker/--no-worker", default=True, show_default=True, help="Learn from turns in this process too."
)
@click.pass_context
def serve(
    context: click.Context,
    *,
    config: Path | None,
    host: str | None,
    port: int | None,
    user: str | None,
    worker: bool,
) -> int:
    """Run the API, and one worker with it, until SIGTERM."""
    from memagent.api.app import create_app  # noqa: PLC0415  heavy
    from memagent.config.environment import load_environment  # noqa: PLC0415
    from memagent.report import logs  # noqa: PLC0415

    environ = options.environ(context)
    settings = load_environment(environ)
    host = host or settings.host
    if user is not None and host not in LOOPBACK:
        raise BadRequest(f"--user lets everybody in who can reach {host}: serve one person on 127.0.0.1 only")
    logs.install(settings.log_level)
    app = create_app(environ, config=config, fixed_user=user, worker=worker)
    if user is None and not (app.state.credentials.keys or app.state.credentials.jwt_secret):
        raise ConfigUnusable(
            "nobody could get in: set MEMAGENT_API_KEYS (`memagent key` makes one) or JWT_SECRET, or serve one person "
            "with --user"
        )
    return _run(app, host=host, port=settings.port if port is None else port, drain_s=settings.drain_s)


def _run(app: FastAPI, *, host: str, port: int, drain_s: float) -> int:
    import uvicorn  # noqa: PLC0415  heavy

    class Server(uvicorn.Server):
        """Says where it listens, and lets those go who wait for a turn before it waits for them."""

        async def startup(self, sockets: list[socket] | None = None) -> None:
            await super().startup(sockets)
            for listening in self.servers:
                for each in listening.sockets:
                    log.info("listening", extra={"address": "{}:{}".format(*each.getsockname()[:2])})

        async def shutdown(self, sockets: list[socket] | None = None) -> None:
            app.state.queue.news.close()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http="h11",  # the other one has no limit for headers
        log_config=None,
        access_log=False,  # paths hold keys of memories; the application logs requests by route
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        h11_max_incomplete_event_size=HEADERS_BYTES,
        timeout_graceful_shutdown=max(1, round(drain_s)),
    )
    # Once it has stopped, uvicorn raises the signal that stopped it anew; by then everything is done.
    signal.signal(signal.SIGTERM, lambda *_: None)
    server = Server(config)
    server.run()
    return ExitCode.OK if server.started else ExitCode.CANNOT_RUN


@click.command()
@options.config
@click.option(
    "--metrics-port", type=click.IntRange(1, 65_535), help="Serve this worker's figures for Prometheus here."
)
@click.pass_context
def worker(context: click.Context, *, config: Path | None, metrics_port: int | None) -> None:
    """Learn from turns that the API accepted, until SIGTERM; run as many as you like."""
    from memagent.config.environment import load_environment  # noqa: PLC0415
    from memagent.report import logs  # noqa: PLC0415

    environ = options.environ(context)
    logs.install(load_environment(environ).log_level)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_work(environ, config, metrics_port))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The loop that uvicorn takes by itself."""
    if sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415  heavy

    return uvloop.new_event_loop


async def _work(environ: Mapping[str, str], config: Path | None, metrics_port: int | None) -> None:
    from memagent import wiring  # noqa: PLC0415  heavy
    from memagent.worker import open_queue  # noqa: PLC0415

    stopping = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stopping.set)
    async with wiring.open(config, environ=environ) as memory, open_queue(memory, worker=True) as queue:
        if metrics_port is not None:
            from prometheus_client import start_http_server  # noqa: PLC0415

            start_http_server(metrics_port, addr=memory.ports.options.host, registry=queue.meters.registry)
        await stopping.wait()


@click.command()
@click.option("--name", required=True, help="Whose key it is, for logs.")
@click.option(
    "--may", "may", multiple=True, type=click.Choice(["turns", "read", "write", "admin"]), required=True
)
def key(name: str, may: tuple[str, ...]) -> None:
    """Make an API key: the key for its owner on stdout, the row for MEMAGENT_API_KEYS on stderr."""
    from memagent.api.auth import May, new_key  # noqa: PLC0415  heavy

    if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
        raise BadRequest(f"{name!r} is not a name for a key: letters, digits, `-` and `_` only")
    made, row = new_key(name, frozenset(May(each) for each in may))
    click.echo(made)
    click.echo(
        f"shown once. Add this row to MEMAGENT_API_KEYS, beside the ones that stand there:\n{row}", err=True
    )


@click.command()
@options.user
@click.option(
    "--base", metavar="URL", help="The service's address; MEMAGENT_PUBLIC_URL or host and port if not given."
)
@click.pass_context
def link(context: click.Context, *, user: str, base: str | None) -> None:
    """Print an address that opens a user's pages; good for ten minutes."""
    from memagent.api.app import credentials  # noqa: PLC0415  heavy
    from memagent.api.login import LINK_TIME  # noqa: PLC0415
    from memagent.api.login import link as login_link  # noqa: PLC0415
    from memagent.config.environment import load_environment  # noqa: PLC0415
    from memagent.wiring import utc_now  # noqa: PLC0415

    settings = load_environment(options.environ(context))
    if settings.session_secret is None:
        raise ConfigUnusable("set MEMAGENT_SESSION_SECRET, here and for the service: it signs the link")
    where = base or settings.public_url or f"http://{settings.host}:{settings.port}"
    accepted = credentials(settings, fixed_user=None)
    click.echo(login_link(where.rstrip("/"), user, accepted, expires=utc_now() + LINK_TIME))
