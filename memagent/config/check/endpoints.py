"""What is wrong in `endpoints.custom` although every single value is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memagent.config.check.draft import dotted
from memagent.config.check.provider import CUSTOM, endpoint_names, known_as
from memagent.config.findings import Label, LibreChat
from memagent.config.nodes import Mapping, Scalar
from memagent.config.spelling import meant

if TYPE_CHECKING:
    from memagent.config.check.draft import Draft, Path
    from memagent.config.findings import Span

NEEDED = ("name", "apiKey", "baseURL", "models")
"""Without each of these LibreChat leaves the endpoint out of its menu and says nothing."""


def check_endpoints(draft: Draft) -> None:
    for index, node in enumerate(draft.items(CUSTOM)):
        if isinstance(node, Mapping):
            _check_complete(draft, (*CUSTOM, index), node)
    _check_repeated(draft)


def _check_complete(draft: Draft, path: Path, node: Mapping) -> None:
    misspelt = {
        near.name
        for key in node.entries
        if key not in NEEDED and (near := meant(key, NEEDED)) and near.certain
    }
    missing = [name for name in NEEDED if not _is_given(node, name) and name not in misspelt]
    if missing and not draft.is_blamed(*((*path, name) for name in missing)):
        title = draft.text((*path, "name"))
        called = f"the endpoint `{draft.quote(title)}`" if title else f"`{dotted(path)}`"
        lacks = [f"no `{name}`" for name in missing]
        listed = " and ".join([", ".join(lacks[:-1]), lacks[-1]] if lacks[:-1] else lacks)
        draft.add(
            "MEM315",
            path,
            f"{called} has {listed}",
            span=draft.value_span((*path, "name")) if title else _first_key(node, draft, path),
            librechat=LibreChat.IGNORES,
            helps=(_HELP[missing[0]],),
            notes=(
                "LibreChat never shows an endpoint that lacks one of `name`, `apiKey`, `baseURL` and `models`",
            ),
        )


_HELP = {
    "name": "add `name`: it is what users see, and what `memory.agent.provider` repeats",
    "apiKey": 'add `apiKey: "${NAME}"`, or `apiKey: user_provided`; any word will do for a server without keys',
    "baseURL": "add `baseURL`, the address up to and without `/chat/completions`",
    "models": "add `models` with a `default` list",
}


def _is_given(node: Mapping, name: str) -> bool:
    entry = node.entries.get(name)
    return entry is not None and not (isinstance(entry.value, Scalar) and entry.value.value in ("", None))


def _first_key(node: Mapping, draft: Draft, path: Path) -> Span | None:
    return draft.key_span((*path, next(iter(node.entries)))) if node.entries else None


def _check_repeated(draft: Draft) -> None:
    first: dict[str, int] = {}
    for index, name in endpoint_names(draft).items():
        earlier = first.setdefault(known_as(name), index)
        if earlier == index:
            continue
        path = (*CUSTOM, index, "name")
        span = draft.value_span((*CUSTOM, earlier, "name"))
        draft.add(
            "MEM316",
            path,
            f"a second custom endpoint is called `{draft.quote(name)}`",
            span=draft.value_span(path),
            librechat=LibreChat.IGNORES,
            labels=(Label(span, "first used here"),) if span else (),
            helps=("give each endpoint a name of its own",),
            notes=("whoever asks for that name gets the first one",),
        )
