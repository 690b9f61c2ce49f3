"""Providers and custom endpoints: from a name in the file to something that can be called (spec/librechat.md §3)."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from memagent.config.accounts import BUILT_IN, USER_PROVIDED, Account, account
from memagent.config.azure import AzureDeployment, deployment_account, find_deployment
from memagent.config.parameters import OPENAI_WIRE, shape
from memagent.config.placeholders import expand_env, is_unresolved, mask, merge_headers, render_headers
from memagent.config.spelling import meant
from memagent.errors import ModelRefused, NoUserKey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memagent.config.agents import AgentSpec
    from memagent.config.placeholders import BodyIds, UserFields
    from memagent.config.settings import CustomEndpoint, Settings

KNOWN_CUSTOM = frozenset({"xai", "deepseek", "moonshot", "openrouter"})
"""Providers that LibreChat knows by name and that still need an endpoint of that name in the file."""

_COMPLETIONS = "/chat/completions"
_ADDED = {"anthropic": ("/v1/messages", "/v1")}
"""What litellm's client of a provider puts behind the address; `/chat/completions` is everybody else's."""


@dataclass(frozen=True, slots=True)
class ModelTarget:
    """One callable model with everything resolved for one user and one turn.

    `model` is litellm's name (`openai/gpt-4o-mini`); `base_url` None means the provider's own. `parameters` go to litellm
    by name, `extra` into the request body as they are; `drop` names what is never sent. `credentials` are further
    arguments of litellm that name an account (`api_version`, `aws_region_name`, `vertex_credentials`). Header values may
    hold Latin-1. Key, credentials and headers stay out of every repr.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    timeout_s: float = 60.0
    credentials: Mapping[str, Any] = field(default_factory=dict, repr=False)
    direct: bool = False
    """`base_url` is the whole address: no path is appended to it."""
    merge_system_into_user: bool = False
    """The conversation must open with a user's message: the system text goes in front of the first one (§4.5)."""


@dataclass(frozen=True, slots=True)
class Provider:
    """What a provider's name stands for: `name` is a built-in provider's or the one spoken, `endpoint` the file's entry."""

    name: str
    endpoint: CustomEndpoint | None = None


def find_provider(name: str, endpoints: Sequence[CustomEndpoint]) -> Provider:
    """The provider of that name as LibreChat finds it (spec/librechat.md §3.1); raises `ModelRefused`.

    Built-in names match exactly, or as all lower case; endpoints match in exact case, except that any casing of an
    endpoint's `Ollama` is reached as `ollama`, and that a known custom provider takes the one endpoint of its name in any
    case.
    """
    provider = name if name in BUILT_IN or name in KNOWN_CUSTOM else name.lower()
    if provider in BUILT_IN:
        return Provider(provider)
    endpoint = next((entry for entry in endpoints if entry.provider_name == name), None)
    if provider not in KNOWN_CUSTOM:
        provider = "openAI"
    elif endpoint is None:
        endpoint = _in_any_case(name, endpoints)
    if endpoint is None:
        raise ModelRefused(f"the provider `{name}` is not supported: {_instead(name, endpoints)}")
    return Provider("anthropic" if endpoint.provider == "anthropic" else provider, endpoint)


def _in_any_case(name: str, endpoints: Sequence[CustomEndpoint]) -> CustomEndpoint | None:
    matches = [entry for entry in endpoints if entry.name.lower() == name.lower()]
    if len(matches) > 1:
        names = ", ".join(f"`{entry.name}`" for entry in matches)
        raise ModelRefused(
            f"the provider `{name}` is ambiguous: the endpoints {names} differ only in case; "
            "write one of these names, or rename one"
        )
    return matches[0] if matches else None


def _instead(name: str, endpoints: Sequence[CustomEndpoint]) -> str:
    if name.lower() in KNOWN_CUSTOM:
        return f"add an entry named `{name}` to `endpoints.custom`, with its `baseURL` and `apiKey`"
    known = [*BUILT_IN, *(entry.provider_name for entry in endpoints)]
    near = meant(name, known)
    if near:
        return f"a provider with a similar name exists, and case counts: `{near.name}`"
    listed = ", ".join(f"`{each}`" for each in dict.fromkeys(known) if each)
    return f"name a built-in one or an entry of `endpoints.custom` exactly as it is written there ({listed})"


def resolve_target(
    settings: Settings,
    *,
    agent: AgentSpec,
    environ: Mapping[str, str],
    user: UserFields,
    body: BodyIds,
    user_key: str | None = None,
    user_base_url: str | None = None,
    timeout_s: float = 60.0,
) -> ModelTarget:
    """The model of `agent`, ready to be called for this user and turn.

    Raises `ModelRefused` when the file or the environment cannot say how to call it, and `NoUserKey` when the user must
    bring a key or an address and brings none.
    """
    provider = find_provider(agent.provider, settings.endpoints)
    entry = _entry(settings, provider, agent.model)
    if provider.endpoint is not None:
        found = _custom_account(
            provider, provider.endpoint, environ=environ, user_key=user_key, user_base_url=user_base_url
        )
    elif isinstance(entry, AzureDeployment):
        found = deployment_account(entry, environ)
    else:
        found = account(
            provider.name,
            environ=environ,
            model=agent.model,
            parameters=agent.model_parameters,
            user_key=user_key,
        )
    drop = entry.drop_params if entry else ()
    shaped = shape(
        agent.model_parameters,
        provider=found.provider,
        model=agent.model,
        add=entry.add_params if entry else {},
        drop=drop,
        user_id=user.id,
    )
    templates = {} if found.base_url_is_users else header_templates(settings, provider, agent.model)
    headers = render_headers(templates, environ=environ, user=user, body=body)
    base_url, direct = _address(found)
    return ModelTarget(
        model=_model_name(found, agent.model, responses=shaped.responses),
        base_url=base_url,
        api_key=found.api_key,
        headers=merge_headers(headers, found.headers),
        parameters=shaped.named,
        extra=shaped.extra,
        drop=drop,
        timeout_s=timeout_s,
        credentials=found.credentials,
        direct=direct,
        merge_system_into_user=found.provider == "bedrock",
    )


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where a custom endpoint's requests are passed on to, as they are. Key and headers stay out of every repr."""

    base_url: str
    api_key: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    direct: bool = False
    """`base_url` is the whole address: no path is appended to it."""


def resolve_upstream(
    settings: Settings, name: str, *, environ: Mapping[str, str], user: UserFields, body: BodyIds
) -> Upstream:
    """The custom endpoint of that name, ready for one request that somebody else has shaped already.

    Raises `ModelRefused` when there is none, when it does not speak OpenAI's chat completions, or when file and environment
    do not say how to reach it, and `NoUserKey` when it takes the user's own key.
    """
    provider = find_provider(name, settings.endpoints)
    if provider.endpoint is None:
        raise ModelRefused(f"`{name}` is a built-in provider: name an entry of `endpoints.custom`")
    if provider.name == "anthropic":
        raise ModelRefused(
            f"the endpoint `{name}` speaks Anthropic's messages, not OpenAI's chat completions"
        )
    found = _custom_account(provider, provider.endpoint, environ=environ, user_key=None, user_base_url=None)
    headers = render_headers(header_templates(settings, provider), environ=environ, user=user, body=body)
    base_url, direct = _address(found)
    return Upstream(base_url or "", found.api_key or "", headers, direct)


def header_templates(settings: Settings, provider: Provider, model: str = "") -> dict[str, str]:
    """The headers of the file for one provider, unresolved: those for all endpoints, and over them its own.

    Azure's groups have theirs by model.
    """
    entry = _entry(settings, provider, model) if model or provider.endpoint else None
    own = entry.headers if entry else settings.built_in_headers.get(provider.name, {})
    return merge_headers(settings.all_headers, own)


def _entry(settings: Settings, provider: Provider, model: str) -> CustomEndpoint | AzureDeployment | None:
    """What the file says about a provider and a model of it, beyond headers of a built-in one."""
    if provider.name == "azureOpenAI" and settings.azure:
        return find_deployment(model, settings.azure)
    return provider.endpoint


def redacted(target: ModelTarget, templates: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What may be shown of a target: every secret as `***`, a header by the placeholders of its template."""
    templates = templates or {}
    return {
        "model": target.model,
        "base_url": _public_url(target.base_url) if target.base_url else None,
        "api_key": "***" if target.api_key else None,
        "headers": {name: mask(templates.get(name, "***")) for name in target.headers},
        "credentials": dict.fromkeys(target.credentials, "***"),
        "parameters": dict(target.parameters),
        "extra": dict.fromkeys(target.extra, "***"),
        "drop": list(target.drop),
        "timeout_s": target.timeout_s,
        "direct": target.direct,
    }


def _custom_account(
    provider: Provider,
    endpoint: CustomEndpoint,
    *,
    environ: Mapping[str, str],
    user_key: str | None,
    user_base_url: str | None,
) -> Account:
    """Key and address of a custom endpoint (spec/librechat.md §3.3).

    LibreChat sends the server's key to whatever address a user gives; here the two come from the same hand.
    """
    name = endpoint.name
    key = _given(endpoint.api_key, name=name, field="apiKey", environ=environ)
    url = _given(endpoint.base_url, name=name, field="baseURL", environ=environ)
    url_is_users = url == USER_PROVIDED
    if url_is_users and key != USER_PROVIDED:
        raise ModelRefused(
            f"the endpoint `{name}` would send the server's key to an address of the user's choice: "
            "set `apiKey: user_provided` beside `baseURL: user_provided`"
        )
    if key == USER_PROVIDED:
        key = _brought(user_key, name=name, what="API key")
    if url_is_users:
        url = _brought(user_base_url, name=name, what="base URL")
        _refuse_inner_address(url, name=name)
    if urlsplit(url).scheme not in {"http", "https"}:
        raise ModelRefused(f"the base URL of the endpoint `{name}` must begin with http:// or https://")
    return Account(
        provider=_wire(provider, endpoint),
        api_key=key,
        base_url=url.rstrip("/"),
        base_url_is_users=url_is_users,
        direct=endpoint.direct_endpoint and provider.name != "anthropic",
    )


def _wire(provider: Provider, endpoint: CustomEndpoint) -> str:
    """Litellm's provider; its own clients know where each service lives, so a whole address goes to the plain one."""
    if provider.name == "anthropic":
        return "anthropic"
    return provider.name if provider.name in KNOWN_CUSTOM and not endpoint.direct_endpoint else "openai"


def _given(template: str, *, name: str, field: str, environ: Mapping[str, str]) -> str:
    value = expand_env(template, environ)
    if is_unresolved(value):
        raise ModelRefused(
            f"the endpoint `{name}` has no `{field}`: set the variable of `{value}` in the environment"
        )
    if not value:
        raise ModelRefused(
            f"the endpoint `{name}` has no `{field}`: add it, or `{field}: {USER_PROVIDED}` if users bring theirs"
        )
    return value


def _brought(value: str | None, *, name: str, what: str) -> str:
    if not value or not value.strip():
        raise NoUserKey(
            f"the endpoint `{name}` takes the user's own {what}, and the turn brings none: send it with the turn"
        )
    return value.strip()


_NUMERIC_LABEL = re.compile(r"(?:0x[0-9a-f]*|\d+)$", re.IGNORECASE)


def _refuse_inner_address(url: str, *, name: str) -> None:
    """A user's address must be out in the world: no loopback, no private network, no number in disguise.

    Only what is written is looked at; a name that resolves inwards is the firewall's to stop.
    """
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    try:
        inner = not ipaddress.ip_address(host).is_global
    except ValueError:
        last = host.rpartition(".")[2]
        inner = (
            "." not in host or bool(_NUMERIC_LABEL.match(last)) or last in {"localhost", "local", "internal"}
        )
    if inner:
        raise NoUserKey(
            f"the base URL for the endpoint `{name}` must be a public address: send another one with the turn"
        )


def _address(found: Account) -> tuple[str | None, bool]:
    """The address without what clients add to it themselves, and whether it is whole nevertheless."""
    url = found.base_url
    if url is None:
        return None, False
    for added in _ADDED.get(found.provider, (_COMPLETIONS,)):
        if url.endswith(added):
            return url.removesuffix(added), False
    return url, found.direct


def _model_name(found: Account, model: str, *, responses: bool) -> str:
    route = "responses/" if responses and found.provider in OPENAI_WIRE else found.route
    return f"{found.provider}/{route}{found.model or model}"


def _public_url(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "***" if parts.query else "", ""))
