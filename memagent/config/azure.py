"""Azure OpenAI as `endpoints.azureOpenAI.groups` describes it: which deployment of which resource answers for a model.

The block is not memagent's to check, so what is of another type than LibreChat's schema allows counts as absent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memagent.config.accounts import Account
from memagent.config.placeholders import expand_env, is_unresolved
from memagent.config.spelling import meant
from memagent.errors import ModelRefused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class AzureDeployment:
    """One model of one group, placeholders unresolved; what the model leaves out is its group's."""

    model: str
    group: str
    api_key: str = field(default="", repr=False)
    instance: str = ""
    deployment: str = ""
    version: str = ""
    base_url: str = ""
    serverless: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    add_params: Mapping[str, Any] = field(default_factory=dict)
    drop_params: tuple[str, ...] = ()


def read_deployments(block: Any) -> tuple[AzureDeployment, ...]:
    """Every model of an `endpoints.azureOpenAI` block; of a model in two groups the later group counts, as in LibreChat."""
    groups = _mapping(block).get("groups")
    found: dict[str, AzureDeployment] = {}
    for group in groups if isinstance(groups, list) else ():
        entry = _mapping(group)
        for model, own in _mapping(entry.get("models")).items():
            found[model] = _deployment(model, _mapping(own), entry)
    return tuple(found.values())


def find_deployment(model: str, deployments: Sequence[AzureDeployment]) -> AzureDeployment:
    """The deployment that answers for `model`; raises `ModelRefused`."""
    by_model = {each.model: each for each in deployments}
    if model in by_model:
        return by_model[model]
    near = meant(model, by_model)
    told = f"a model with a similar name is: `{near.name}`" if near else "add it to a group's `models`"
    raise ModelRefused(f"the model `{model}` is in no group of `endpoints.azureOpenAI`: {told}")


def deployment_account(found: AzureDeployment, environ: Mapping[str, str]) -> Account:
    """Key and address of a deployment; raises `ModelRefused` for what its group leaves out."""
    key = _needed(found, "apiKey", found.api_key, environ)
    version = expand_env(found.version, environ)
    base_url = expand_env(found.base_url, environ)
    if found.serverless:
        base_url = (
            _needed(found, "baseURL", found.base_url, environ).rstrip("/").removesuffix("/chat/completions")
        )
        url = f"{base_url}/chat/completions?api-version={version}" if version else base_url
        return Account("openai", api_key=key, base_url=url, headers={"api-key": key}, direct=bool(version))
    instance = _needed(found, "instanceName", found.instance, environ)
    deployment = _needed(found, "deploymentName", found.deployment, environ)
    version = _needed(found, "version", found.version, environ)
    address = f"https://{instance.removesuffix('.openai.azure.com')}.openai.azure.com"
    if base_url:
        address = base_url.replace("${INSTANCE_NAME}", instance).replace("${DEPLOYMENT_NAME}", deployment)
    return Account(
        "azure",
        api_key=key,
        base_url=address.rstrip("/"),
        credentials={"api_version": version},
        model=deployment,
    )


def _deployment(model: str, own: Mapping[str, Any], group: Mapping[str, Any]) -> AzureDeployment:
    drop = group.get("dropParams")
    return AzureDeployment(
        model=model,
        group=_text(group.get("group")),
        api_key=_text(group.get("apiKey")),
        instance=_text(group.get("instanceName")),
        deployment=_text(own.get("deploymentName")) or _text(group.get("deploymentName")),
        version=_text(own.get("version")) or _text(group.get("version")),
        base_url=_text(group.get("baseURL")),
        serverless=group.get("serverless") is True,
        headers={
            name: text
            for name, text in _mapping(group.get("additionalHeaders")).items()
            if isinstance(text, str)
        },
        add_params=_mapping(group.get("addParams")),
        drop_params=tuple(name for name in drop if isinstance(name, str)) if isinstance(drop, list) else (),
    )


def _needed(found: AzureDeployment, field: str, template: str, environ: Mapping[str, str]) -> str:
    value = expand_env(template, environ)
    where = (
        f"the group `{found.group}` of `endpoints.azureOpenAI` has no `{field}` for the model `{found.model}`"
    )
    if is_unresolved(value):
        raise ModelRefused(f"{where}: set the variable of `{value}` in the environment")
    if not value:
        raise ModelRefused(f"{where}: add it")
    return value


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
