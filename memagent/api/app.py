"""The application: opens memory, the turn queue and a worker for as long as it runs, and brings the routes together."""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI

from memagent import __version__, wiring
from memagent.api import (
    faults,
    limits,
    login,
    mcp,
    memories,
    operation,
    requests,
    sessions,
    tracing,
    turns,
    validation,
)
from memagent.api.auth import Credentials, parse_keys
from memagent.api.gateway import open_gateway
from memagent.api.gateway import routes as chats
from memagent.api.librechat import routes as librechat
from memagent.api.pages import answers, routes, session_pages, validation_page
from memagent.api.pages import faults as page_faults
from memagent.config.environment import load_environment
from memagent.service.wellness import Wellness
from memagent.worker import open_queue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from datetime import datetime
    from pathlib import Path

    from memagent.config.endpoints import ModelTarget
    from memagent.config.environment import Environment
    from memagent.llm import ChatModel

ROUTERS = (
    turns.router,
    memories.router,
    sessions.router,
    librechat.router,
    chats.router,
    login.router,
    operation.router,
    validation.router,
    routes.router,
    session_pages.router,
    validation_page.router,
    answers.router,
)
"""Every router of the service; one line each."""


def create_app(
    environ: Mapping[str, str],
    *,
    config: Path | str | None = None,
    clock: Callable[[], datetime] = wiring.utc_now,
    models: Callable[[ModelTarget], ChatModel] | None = None,
    fixed_user: str | None = None,
    worker: bool = True,
) -> FastAPI:
    """The service for one configuration. `fixed_user` is everybody, for one person on loopback; `worker` learns here too.

    Raises `ConfigUnusable` for settings that cannot be used; the rest of what `wiring.open` raises comes at start.
    """
    options = load_environment(environ)
    accepted = credentials(options, fixed_user=fixed_user)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with wiring.open(config, environ=environ, clock=clock, models=models, watch=True) as memory:
            app.state.memory = memory
            async with (
                open_queue(memory, worker=worker) as queue,
                open_gateway(queue) as gateway,
                mcp.open_mcp(memory) as tools,
            ):
                app.state.queue = queue
                app.state.mcp = tools
                app.state.gateway = gateway
                app.state.wellness = Wellness(memory.ports)
                yield

    app = FastAPI(
        title="memagent",
        version=__version__,
        summary="Memory for chats, configured by librechat.yaml.",
        lifespan=lifespan,
        openapi_tags=TAGS,
        telemetry={"tracing": options.otel_endpoint is not None, "metrics": False, "logs": False},
    )
    app.state.credentials = accepted
    app.state.options = options
    tracing.install(options)
    faults.install(app)
    page_faults.install(app)
    validation.install(app)
    limits.install(app, options)
    app.add_middleware(requests.RequestLog)
    for router in ROUTERS:
        app.include_router(router)
    app.router.routes.append(mcp.route)
    return app


TAGS = [
    {"name": "turns", "description": "Hand over turns, ask for context."},
    {"name": "memories", "description": "What is remembered, and the user's own switch."},
    {"name": "sessions", "description": "A user's own sessions."},
    {"name": "librechat", "description": "LibreChat's own memory API, for its panel."},
    {"name": "gateway", "description": "OpenAI's chat completions with memory."},
    {"name": "login", "description": "How a user's browser gets in."},
    {"name": "operation", "description": "Health, metrics, dead letters, erasure."},
]


def credentials(options: Environment, *, fixed_user: str | None) -> Credentials:
    """What this server accepts; without a session secret, sessions end when the process does."""
    return Credentials(
        keys=parse_keys(options.api_keys or ""),
        jwt_secret=options.jwt_secret,
        session_secret=options.session_secret or secrets.token_urlsafe(32),
        fixed_user=fixed_user,
    )
