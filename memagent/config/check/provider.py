"""Whether the memory agent's provider and model lead anywhere (spec/librechat.md §3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memagent.config.findings import Label, LibreChat
from memagent.config.nodes import Mapping
from memagent.config.spelling import meant

if TYPE_CHECKING:
    from memagent.config.check.draft import Draft, Path

PROVIDER: Path = ("memory", "agent", "provider")
MODEL: Path = ("memory", "agent", "model")
CUSTOM: Path = ("endpoints", "custom")

BUILT_IN = ("openAI", "azureOpenAI", "anthropic", "google", "vertexai", "bedrock")
NEED_ENDPOINT = ("xai", "deepseek", "moonshot", "openrouter")
"""Providers that LibreChat knows by name and that still need a custom endpoint of that name."""


def check_provider(draft: Draft) -> None:
    provider = draft.text(PROVIDER)
    if not provider or "${" in provider or draft.text(("memory", "agent", "id")) or draft.is_blamed(PROVIDER):
        return
    names = endpoint_names(draft)
    endpoint = _matching(provider, names)
    if endpoint is not None:
        _check_model(draft, provider, (*CUSTOM, endpoint))
    elif not _is_built_in(provider):
        _report(draft, provider, names)


def endpoint_names(draft: Draft) -> dict[int, str]:
    """Index to name of the custom endpoints that have one."""
    names = {index: draft.text((*CUSTOM, index, "name")) for index in range(len(draft.items(CUSTOM)))}
    return {index: name for index, name in names.items() if name}


def known_as(name: str) -> str:
    """The provider name under which LibreChat finds an endpoint: every casing of Ollama is `ollama`."""
    return "ollama" if name.lower() == "ollama" else name


def _is_built_in(provider: str) -> bool:
    return provider in BUILT_IN or provider.lower() in BUILT_IN


def _matching(provider: str, names: dict[int, str]) -> int | None:
    """The endpoint that LibreChat would use for `provider`, None for a built-in or none at all."""
    if _is_built_in(provider):
        return None
    exact = next((index for index, name in names.items() if known_as(name) == provider), None)
    if exact is None and provider.lower() in NEED_ENDPOINT:
        alike = _alike(provider, names)
        return alike[0] if len(alike) == 1 else None
    return exact


def _alike(provider: str, names: dict[int, str]) -> list[int]:
    """The endpoints of that name in any case."""
    return [index for index, name in names.items() if name.lower() == provider.lower()]


def _report(draft: Draft, provider: str, names: dict[int, str]) -> None:
    helps: tuple[str, ...]
    labels: tuple[Label, ...] = ()
    reachable = [known_as(name) for name in names.values()]
    near = meant(provider, [*reachable, *BUILT_IN])
    if provider.lower() in NEED_ENDPOINT and _alike(provider, names):
        helps = ("write one of the names exactly: several endpoints differ from it in case only",)
    elif provider.lower() in NEED_ENDPOINT:
        helps = (f"add a custom endpoint with `name: {provider.lower()}`, its `baseURL` and `apiKey`",)
    elif provider.lower() == "ollama" and "ollama" in reachable:
        helps = (
            "write `provider: ollama`: LibreChat knows every spelling of that endpoint by the lowercase name",
        )
    elif near:
        helps = (f"{_kind(near.name, names)} with a similar name exists: `{near.name}`",)
    elif names:
        known = ", ".join(f"`{draft.quote(name)}`" for name in dict.fromkeys(reachable))
        helps = (f"the custom endpoints of this file are {known}",)
    else:
        helps = ("add a custom endpoint of that name under `endpoints.custom`",)
    index = next((index for index, name in names.items() if near and known_as(name) == near.name), None)
    span = draft.value_span((*CUSTOM, index, "name")) if index is not None else None
    if span:
        labels = (Label(span, "this endpoint"),)
    draft.add(
        "MEM304",
        PROVIDER,
        f"no endpoint and no built-in provider is called `{draft.quote(provider)}`",
        span=draft.value_span(PROVIDER),
        librechat=LibreChat.ACCEPTS,
        labels=labels,
        helps=helps,
        notes=(
            "names are compared letter by letter; LibreChat starts, and then every memory run fails",
            f"built-in are {', '.join(f'`{name}`' for name in BUILT_IN)}",
        ),
    )


def _kind(name: str, names: dict[int, str]) -> str:
    return "a custom endpoint" if name in map(known_as, names.values()) else "a built-in provider"


def _check_model(draft: Draft, provider: str, endpoint: Path) -> None:
    model = draft.text(MODEL)
    listed = model_names(draft, (*endpoint, "models", "default"))
    if (
        not model
        or "${" in model
        or not listed
        or model in listed
        or draft.flag((*endpoint, "models", "fetch"))
    ):
        return
    near = meant(model, listed)
    span = draft.key_span((*endpoint, "models", "default"))
    draft.add(
        "MEM313",
        MODEL,
        f"the endpoint `{draft.quote(provider)}` does not list the model `{draft.quote(model)}`",
        span=draft.value_span(MODEL),
        librechat=LibreChat.ACCEPTS,
        labels=(Label(span, "the models it lists"),) if span else (),
        helps=(f"a model with a similar name is listed: `{near.name}`",)
        if near
        else ("add it to `models.default`, or set `models.fetch: true`",),
    )


def model_names(draft: Draft, path: Path) -> list[str]:
    """The names in a list of models, each a text or a mapping with a `name`."""
    found = []
    for index, node in enumerate(draft.items(path)):
        here: Path = (*path, index)
        name = draft.text((*here, "name")) if isinstance(node, Mapping) else draft.text(here)
        if name:
            found.append(name)
    return found
