"""`decay simulate`: a rehearsal of forgetting, which changes nothing."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from memagent.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from memagent.service import Memagent


@click.group()
def decay() -> None:
    """Rehearse what will go dormant or be forgotten."""


@decay.command()
@options.config
@options.user
@options.agent
@options.shared
@options.as_json
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=90,
    show_default=True,
    help="Days with a chat that matches nothing.",
)
@click.option(
    "--saves", type=click.IntRange(0, 100), default=0, show_default=True, help="New memories on each of them."
)
@click.pass_context
def simulate(
    context: click.Context,
    *,
    config: Path | None,
    user: str,
    agent: str,
    shared: str,
    as_json: bool,
    days: int,
    saves: int,
) -> None:
    """What would go dormant or be forgotten, on which day of chatting, and why."""
    from memagent.decay import simulate as rehearse  # noqa: PLC0415  keeps the command group light
    from memagent.report import memories as report  # noqa: PLC0415  rich
    from memagent.service.hands import limits  # noqa: PLC0415

    scope = options.scope_option(user, agent, shared)

    async def work(memory: Memagent) -> list[dict[str, Any]]:
        ports, today = memory.ports, memory.ports.clock()
        if not ports.options.memory_decay_enabled:
            return []
        forecasts = rehearse(
            [each for each in await memory.list(scope) if each.trusted],
            days=days,
            now=today,
            dormant_after_days=ports.options.dormant_after_days,
            entries=limits(ports, scope).entries,
            saves_per_day=saves,
        )
        return [
            {
                **asdict(each),
                "fate": each.fate.value,
                "earliest": (today + timedelta(days=each.day)).date().isoformat(),
            }
            for each in forecasts
        ]

    rows = options.with_memory(context, config, work)
    options.show(rows, as_json=as_json, table=lambda found: report.forecast(found, days=days))
