"""`notes`: the memory files of an agent's workspace, indexed, searched and read."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from functools import update_wrapper, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memagent.cli import ExitCode, options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from memagent.sessions.notes import NoteIndex

Result = TypeVar("Result")

INDEX_PATIENCE_S = 600.0
"""A person who searches once wants the answer of an index that is up to date."""


@click.group()
def notes() -> None:
    """Index, search and read memory files: MEMORY.md, memory/**/*.md and extra paths."""


def of_workspace(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that name a workspace and its index; it gets `place` and the rest."""

    @wraps(command)
    def wrapped(context: click.Context, /, **given: Any) -> Any:
        names = ("workspace", "extra", "agent", "store", "chunk_tokens", "chunk_overlap")
        place = {name: given.pop(name) for name in names}
        return command(context, place=place, **given)

    for option in (
        options.as_json,
        click.option(
            "--chunk-overlap", type=click.IntRange(0), default=80, show_default=True, metavar="TOKENS"
        ),
        click.option(
            "--chunk-tokens", type=click.IntRange(8), default=400, show_default=True, metavar="TOKENS"
        ),
        click.option(
            "--store", metavar="ADDRESS", help="A Redis URL, or a folder for LanceDB; else as configured."
        ),
        click.option(
            "--agent", default="main", show_default=True, metavar="ID", help="Whose workspace it is."
        ),
        click.option("--extra", multiple=True, metavar="PATH", help="A further file or folder of notes."),
        click.option(
            "--workspace",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            default=Path(),
            help="The agent's folder; this one if not given.",
        ),
    ):
        option(wrapped)
    passed: Callable[..., Any] = click.pass_context(wrapped)
    return update_wrapper(passed, wrapped)


@notes.command()
@click.option("--force", is_flag=True, help="Build the whole index anew, beside the one that answers.")
@of_workspace
def index(context: click.Context, *, place: Mapping[str, Any], as_json: bool, force: bool) -> None:
    """Bring the index up to the files; only changed texts are embedded."""
    from memagent.report import notes as report  # noqa: PLC0415  rich

    async def work(opened: NoteIndex) -> dict[str, Any]:
        return asdict(await opened.sync(force=force))

    options.show(_with_index(context, place, work), as_json=as_json, table=report.synced)


@notes.command()
@click.argument("query")
@click.option("--max-results", type=click.IntRange(1, 50), default=6, show_default=True)
@click.option("--min-score", type=click.FloatRange(0, 1), default=0.35, show_default=True)
@of_workspace
def search(
    context: click.Context,
    *,
    place: Mapping[str, Any],
    as_json: bool,
    query: str,
    max_results: int,
    min_score: float,
) -> int:
    """Find notes in everyday words. Exits 1 when nothing is found."""
    from memagent.report import notes as report  # noqa: PLC0415  rich
    from memagent.sessions.search import SearchPolicy, search_notes  # noqa: PLC0415  numpy
    from memagent.wiring import utc_now  # noqa: PLC0415  models

    policy = SearchPolicy(limit=max_results, min_score=min_score)

    async def work(opened: NoteIndex) -> dict[str, Any]:
        answer = await search_notes(opened, query, now=utc_now(), policy=policy, patience_s=INDEX_PATIENCE_S)
        return {"results": [hit.to_json() for hit in answer.hits], "stale": answer.stale}

    answer = _with_index(context, place, work)
    options.show(answer, as_json=as_json, table=report.found)
    return ExitCode.OK if answer["results"] else ExitCode.FINDINGS


@notes.command()
@click.argument("path")
@click.option("--from", "first", type=click.IntRange(1), default=1, show_default=True, metavar="LINE")
@click.option("--lines", type=click.IntRange(0), help="How many; all if not given.")
@of_workspace
def get(
    context: click.Context,  # noqa: ARG001  what `of_workspace` hands over
    *,
    place: Mapping[str, Any],
    as_json: bool,
    path: str,
    first: int,
    lines: int | None,
) -> None:
    """Print lines of a memory file; a file that is not there is empty."""
    from memagent.sessions.files import Workspace  # noqa: PLC0415  a command of its own needs no store

    text = Workspace(place["workspace"], tuple(place["extra"])).lines(path, first=first, count=lines)
    click.echo(json.dumps({"path": path, "text": text}, ensure_ascii=False) if as_json else text, nl=as_json)


@notes.command()
@of_workspace
def watch(context: click.Context, *, place: Mapping[str, Any], as_json: bool) -> None:
    """Keep the index like the files until interrupted, one line for each change."""
    from memagent.report import notes as report  # noqa: PLC0415  rich

    async def work(opened: NoteIndex) -> None:
        async for done in opened.watch(stop=asyncio.Event()):
            if as_json:
                click.echo(json.dumps(asdict(done), ensure_ascii=False))
            else:
                options.show(asdict(done), as_json=False, table=report.synced)

    _with_index(context, place, work)


def _with_index(
    context: click.Context, place: Mapping[str, Any], work: Callable[[NoteIndex], Awaitable[Result]]
) -> Result:
    async def run() -> Result:
        async with _opened(options.environ(context), place) as index:
            return await work(index)

    return asyncio.run(run())


@asynccontextmanager
async def _opened(environ: Mapping[str, str], place: Mapping[str, Any]) -> AsyncIterator[NoteIndex]:
    """The index of a workspace with the configured embedder and store, for as long as the block runs."""
    from memagent.config.environment import load_environment  # noqa: PLC0415  pydantic
    from memagent.llm.embedders import open_embedder, target_of  # noqa: PLC0415  numpy
    from memagent.llm.gateway import Gateway  # noqa: PLC0415  litellm
    from memagent.sessions.chunks import Chunking  # noqa: PLC0415
    from memagent.sessions.files import Workspace  # noqa: PLC0415
    from memagent.sessions.notes import NoteIndex  # noqa: PLC0415
    from memagent.sessions.vectors.address import open_vectors  # noqa: PLC0415
    from memagent.store.embedded import EmbeddedRedis  # noqa: PLC0415

    settings = load_environment(environ)
    async with AsyncExitStack() as opened:
        gateway = Gateway()
        opened.push_async_callback(gateway.close)
        embedder = await open_embedder(
            settings.embedder,
            embed=gateway.embed,
            dimensions=settings.embedder_dimensions,
            floor=settings.match_floor,
            target=target_of(settings.embedder, environ),
        )
        address = place["store"] or settings.redis_url
        if address is None:
            server = await EmbeddedRedis.open(settings.data_dir, appendfsync=settings.fsync)
            address = (await opened.enter_async_context(server)).url
        vectors = open_vectors(address, prefix=settings.key_prefix)
        opened.push_async_callback(vectors.close)
        index = NoteIndex(
            Workspace(place["workspace"], tuple(place["extra"])),
            vectors,
            embedder,
            owner=place["agent"],
            chunking=Chunking(place["chunk_tokens"], place["chunk_overlap"]),
        )
        opened.push_async_callback(index.close)
        yield index
