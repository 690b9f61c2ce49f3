"""`eval`: a model's extraction over the labelled set, scored."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from memagent.cli import ExitCode, options
from memagent.cli.demo import example
from memagent.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memagent.config.agents import AgentSpec
    from memagent.config.endpoints import ModelTarget
    from memagent.config.settings import MemorySettings
    from memagent.evaluation.labelled import Labelled
    from memagent.evaluation.outcome import Outcome
    from memagent.evaluation.run import Asking
    from memagent.llm.gateway import Gateway

BASELINES = ("perfect", "empty", "greedy", "parrot")
KINDS = ("keep", "update", "forget", "nothing", "injection", "others")


@click.command()
@click.option("--model", help="A model of litellm's to ask, such as openai/gpt-4o-mini.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="A librechat.yaml: its memory agent's endpoint, model, parameters, instructions and limits of reading.",
)
@click.option("--scripted", type=click.Choice(BASELINES), help="A baseline in place of a model.")
@click.option(
    "--set", "path", type=click.Path(path_type=Path), help="Another labelled set: a file or a folder."
)
@click.option("--language", "languages", multiple=True, help="Only turns in this language, such as de.")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only turns of this kind.")
@click.option(
    "--limit", type=click.IntRange(1), help="At most so many turns, of every kind and language in turn."
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Keep answers here; what is there is not asked again."
)
@click.option(
    "--concurrency", type=click.IntRange(1, 64), default=4, show_default=True, help="Turns asked at a time."
)
@click.option(
    "--misses", type=click.IntRange(0), default=10, show_default=True, help="How many misses to show."
)
@options.as_json
@click.pass_context
def eval(  # noqa: A001  the command is called so
    context: click.Context,
    /,
    *,
    path: Path | None,
    out: Path | None,
    as_json: bool,
    misses: int,
    languages: Sequence[str],
    kinds: Sequence[str],
    limit: int | None,
    **named: Any,
) -> int:
    """Measure how well a model keeps, updates, forgets, ignores and resists, on a labelled set of turns.

    Name a model with --model, --config or both, or a baseline with --scripted. Exit codes: 0 every turn was answered,
    1 some were not, 2 the evaluation could not run.
    """
    from memagent.evaluation.labelled import chosen  # noqa: PLC0415
    from memagent.evaluation.outcome import Results  # noqa: PLC0415
    from memagent.evaluation.reading import read_set  # noqa: PLC0415
    from memagent.evaluation.scores import evaluation  # noqa: PLC0415
    from memagent.report import evaluation as report  # noqa: PLC0415  rich

    where = path or example("eval")
    turns = chosen(read_set(where), languages=languages, kinds=kinds, limit=limit)
    if not turns:
        raise BadRequest(f"no turn of {where} is of that language and kind")
    results = Results(out)
    name, outcomes = asyncio.run(_ask(options.environ(context), turns, results, **named))
    found = evaluation(turns, outcomes, model=name, files=where.name)
    options.show(found, as_json=as_json, table=lambda value: report.evaluation(value, misses=misses))
    return ExitCode.FINDINGS if found["faults"] else ExitCode.OK


async def _ask(
    environ: Mapping[str, str],
    turns: Sequence[Labelled],
    results: Any,
    *,
    model: str | None,
    config: Path | None,
    scripted: str | None,
    concurrency: int,
) -> tuple[str, dict[str, Outcome]]:
    from memagent.evaluation.run import Watch, evaluate  # noqa: PLC0415
    from memagent.llm.gateway import Gateway  # noqa: PLC0415

    if bool(scripted) == bool(model or config):
        raise click.UsageError("name what is measured: --model, --config or both, or --scripted")
    gateway = Gateway()
    try:
        if scripted:
            asking = _baseline(scripted, concurrency)
        else:
            asking = _asking(environ, gateway, model=model, config=config, concurrency=concurrency)
        with click.progressbar(length=len(turns), label=asking.name, file=sys.stderr) as bar:
            outcomes = await evaluate(
                turns, asking, results, watch=Watch(perf_counter), told=lambda _: bar.update(1)
            )
        return asking.name, outcomes
    finally:
        await gateway.close()


def _baseline(name: str, concurrency: int) -> Asking:
    from memagent.evaluation.baselines import Baseline, played  # noqa: PLC0415
    from memagent.evaluation.run import Asking  # noqa: PLC0415

    baseline = Baseline(name)
    return Asking(f"baseline {name}", lambda turn: played(baseline, turn), concurrency=concurrency)


def _asking(
    environ: Mapping[str, str], gateway: Gateway, *, model: str | None, config: Path | None, concurrency: int
) -> Asking:
    """How a real model is asked: as the file says, and with `model` the one of litellm's in place of the file's."""
    from memagent.agent.prompt import Budget  # noqa: PLC0415
    from memagent.config.endpoints import ModelTarget  # noqa: PLC0415
    from memagent.config.placeholders import expand_special  # noqa: PLC0415
    from memagent.evaluation.run import STORED_AT, Asking  # noqa: PLC0415

    rest: dict[str, Any] = {}
    if config is None:
        target = ModelTarget(str(model))
    else:
        memory, agent, target = _configured(environ, config, model)
        instructions = expand_special(agent.instructions, now=STORED_AT) or None
        rest = {
            "instructions": instructions,
            "budget": Budget(memory.message_window_size, memory.max_input_tokens),
            "char_limit": memory.char_limit,
            "system_role": not target.merge_system_into_user,
        }
    if model is not None:
        key = environ.get(f"{model.partition('/')[0].upper()}_API_KEY")
        target = ModelTarget(model, api_key=key, parameters=target.parameters, timeout_s=target.timeout_s)
    return Asking(
        target.model,
        lambda _: gateway.model(target),
        settings={"url": target.base_url, "parameters": dict(target.parameters), "extra": dict(target.extra)},
        concurrency=concurrency,
        **rest,
    )


def _configured(
    environ: Mapping[str, str], config: Path, model: str | None
) -> tuple[MemorySettings, AgentSpec, ModelTarget]:
    """The memory block of a file, its agent, and the model to ask; the file's endpoint is not needed for another model."""
    from memagent import wiring  # noqa: PLC0415  heavy
    from memagent.config.endpoints import ModelTarget, resolve_target  # noqa: PLC0415
    from memagent.config.environment import load_environment  # noqa: PLC0415
    from memagent.config.placeholders import BodyIds, UserFields  # noqa: PLC0415

    chosen = load_environment(environ)
    settings = wiring.read_settings(config, chosen)
    agent = settings.memory.agent
    if agent is None:
        raise BadRequest(f"{config} has no `memory.agent`: there is nothing to measure")
    if model is not None:
        return (
            settings.memory,
            agent,
            ModelTarget(model, parameters=agent.model_parameters, timeout_s=chosen.model_timeout_s),
        )
    target = resolve_target(
        settings,
        agent=agent,
        environ=environ,
        user=UserFields("evaluation"),
        body=BodyIds("evaluation", "evaluation"),
        timeout_s=chosen.model_timeout_s,
    )
    return settings.memory, agent, target
