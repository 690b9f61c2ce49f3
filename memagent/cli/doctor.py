"""`doctor`: the configuration's findings, then live probes of everything a turn stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memagent.cli import ExitCode, options

if TYPE_CHECKING:
    from pathlib import Path

    from memagent.service import Memagent


@click.command()
@options.config
@options.as_json
@click.pass_context
def doctor(context: click.Context, *, config: Path | None, as_json: bool) -> int:
    """Probe the configuration, the store, the embedder and the model, live. Exit codes are those of `validate`."""
    from memagent.config.environment import load_environment, unknown_variables  # noqa: PLC0415  pydantic
    from memagent.report import health  # noqa: PLC0415  rich
    from memagent.service.doctor import Probe, Verdict, examine  # noqa: PLC0415

    environ = options.environ(context)
    load_environment(environ)
    strange = [
        Probe(
            "environment",
            Verdict.WARNING,
            f"{name} is read by nobody",
            f"a variable with a similar name exists: {near}" if near else "unset it",
        )
        for name, near in unknown_variables(environ)
    ]

    async def work(memory: Memagent) -> list[dict[str, Any]]:
        settings = memory.ports.settings
        found = [
            Probe(
                "configuration",
                Verdict.WARNING,
                f"[{finding.code}] {finding.message}",
                "see `memagent validate`",
            )
            for finding in settings.warnings
        ] or [Probe("configuration", Verdict.OK, settings.file)]
        found += [probe async for probe in examine(memory.ports)]
        return [probe.to_json() for probe in [*strange, *found]]

    probes = options.with_memory(context, config, work)
    options.show(probes, as_json=as_json, table=health.probes)
    return ExitCode.FINDINGS if any(probe["verdict"] == Verdict.FAILED for probe in probes) else ExitCode.OK
