"""Accounts of built-in providers: their keys and addresses, from the environment under LibreChat's own names."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memagent.errors import ModelRefused, NoUserKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BUILT_IN = ("openAI", "azureOpenAI", "anthropic", "google", "vertexai", "bedrock")
"""Built-in providers, as the file must spell them."""

USER_PROVIDED = "user_provided"
"""Written for a key or an address: the user brings their own."""

DEFAULT_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class Account:
    """Where a call goes and who pays. `provider` is litellm's name; `route` and `model` complete its model name."""

    provider: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    base_url_is_users: bool = False
    credentials: Mapping[str, Any] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    route: str = ""
    model: str | None = None
    """What the provider calls the model, where that differs: a deployment."""
    direct: bool = False
    """`base_url` is the whole address."""


def account(
    provider: str,
    *,
    environ: Mapping[str, str],
    model: str,
    parameters: Mapping[str, Any],
    user_key: str | None = None,
) -> Account:
    """The account of one of `BUILT_IN`; raises `ModelRefused` naming the variable that is missing, or `NoUserKey`."""
    return _ACCOUNTS[provider](_Wallet(environ, user_key), model, parameters)


@dataclass(frozen=True, slots=True)
class _Wallet:
    environ: Mapping[str, str]
    user_key: str | None

    def get(self, *names: str) -> str | None:
        """The first of the variables that is set and not blank."""
        values = (self.environ.get(name, "").strip() for name in names)
        return next((value for value in values if value), None)

    def key(self, *names: str) -> str:
        """A key that there must be: the environment's, or the user's where the environment says so."""
        value = self.get(*names)
        if value is None:
            raise ModelRefused(
                f"no API key for the memory agent's provider: set `{names[0]}` in the environment"
            )
        if value != USER_PROVIDED:
            return value
        if not self.user_key or not self.user_key.strip():
            raise NoUserKey(
                f"`{names[0]}` is `{USER_PROVIDED}`, and the turn brings no key of the user: send it with the turn"
            )
        return self.user_key.strip()

    def address(self, name: str) -> str | None:
        url = self.get(name)
        if url == USER_PROVIDED:
            raise ModelRefused(
                f"`{name}` is `{USER_PROVIDED}`: only an entry of `endpoints.custom` takes a user's address"
            )
        return url.rstrip("/") if url else None

    def on(self, name: str) -> bool:
        return (self.get(name) or "").lower() == "true"


def _openai(wallet: _Wallet, _model: str, _parameters: Mapping[str, Any]) -> Account:
    organization = wallet.get("OPENAI_ORGANIZATION")
    return Account(
        "openai",
        api_key=wallet.key("OPENAI_API_KEY"),
        base_url=wallet.address("OPENAI_REVERSE_PROXY"),
        headers={"OpenAI-Organization": organization} if organization else {},
    )


def _anthropic(wallet: _Wallet, _model: str, _parameters: Mapping[str, Any]) -> Account:
    return Account(
        "anthropic",
        api_key=wallet.key("ANTHROPIC_API_KEY"),
        base_url=wallet.address("ANTHROPIC_REVERSE_PROXY"),
    )


def _google(wallet: _Wallet, model: str, parameters: Mapping[str, Any]) -> Account:
    """Google's API with a key; without one, Vertex AI with a service account, as in LibreChat."""
    if wallet.get("GOOGLE_KEY") is None and wallet.get("GOOGLE_SERVICE_KEY_FILE") is not None:
        return _vertex(wallet, model, parameters)
    key = wallet.key("GOOGLE_KEY")
    return Account(
        "gemini",
        api_key=key,
        base_url=wallet.address("GOOGLE_REVERSE_PROXY"),
        headers={"Authorization": f"Bearer {key}"} if wallet.on("GOOGLE_AUTH_HEADER") else {},
    )


def _vertex(wallet: _Wallet, _model: str, _parameters: Mapping[str, Any]) -> Account:
    service_key = wallet.get("GOOGLE_SERVICE_KEY_FILE")
    if service_key is None:
        raise ModelRefused(
            "no service account for Vertex AI: set `GOOGLE_SERVICE_KEY_FILE` to the key file's path or its JSON"
        )
    location = wallet.get("GOOGLE_LOC", "GOOGLE_CLOUD_LOCATION")
    return Account(
        "vertex_ai",
        base_url=wallet.address("GOOGLE_REVERSE_PROXY"),
        credentials={"vertex_credentials": _service_key(service_key)}
        | ({"vertex_location": location} if location else {}),
    )


def _azure(wallet: _Wallet, model: str, _parameters: Mapping[str, Any]) -> Account:
    key = wallet.key("AZURE_API_KEY", "AZURE_OPENAI_API_KEY")
    instance = wallet.get("AZURE_OPENAI_API_INSTANCE_NAME") or ""
    deployment = wallet.get("AZURE_OPENAI_API_DEPLOYMENT_NAME")
    if deployment is None or wallet.on("AZURE_USE_MODEL_AS_DEPLOYMENT_NAME"):
        deployment = model.replace(".", "")
    version = wallet.get("AZURE_OPENAI_API_VERSION")
    if version is None:
        raise ModelRefused(
            "no API version for Azure OpenAI: set `AZURE_OPENAI_API_VERSION` in the environment"
        )
    address = wallet.address("AZURE_OPENAI_BASEURL")
    if address is not None:
        address = address.replace("${INSTANCE_NAME}", instance).replace("${DEPLOYMENT_NAME}", deployment)
    elif instance:
        address = f"https://{instance.removesuffix('.openai.azure.com')}.openai.azure.com"
    else:
        raise ModelRefused(
            "no instance of Azure OpenAI: set `AZURE_OPENAI_API_INSTANCE_NAME` in the environment"
        )
    return Account(
        "azure",
        api_key=key,
        base_url=address,
        credentials={"api_version": version},
        model=deployment,
    )


def _bedrock(wallet: _Wallet, _model: str, parameters: Mapping[str, Any]) -> Account:
    """Long-lived keys, a bearer token, a profile, or whatever AWS itself finds on this host."""
    region = parameters.get("region") or wallet.get("BEDROCK_AWS_DEFAULT_REGION") or DEFAULT_REGION
    proxy = wallet.address("BEDROCK_REVERSE_PROXY")
    address = f"https://{proxy}" if proxy and "://" not in proxy else proxy
    credentials: dict[str, Any] = {"aws_region_name": str(region)}
    bearer = wallet.get("BEDROCK_AWS_BEARER_TOKEN")
    key_id, secret = wallet.get("BEDROCK_AWS_ACCESS_KEY_ID"), wallet.get("BEDROCK_AWS_SECRET_ACCESS_KEY")
    if USER_PROVIDED in {bearer, secret}:
        bearer, key_id, secret = wallet.key(*_bedrock_keys(bearer)), None, None
    elif bearer is None and (key_id is None) != (secret is None):
        raise ModelRefused(
            "`BEDROCK_AWS_ACCESS_KEY_ID` and `BEDROCK_AWS_SECRET_ACCESS_KEY` belong together: set both, or neither"
        )
    if bearer is None and key_id is not None:
        credentials |= {"aws_access_key_id": key_id, "aws_secret_access_key": secret}
        token = wallet.get("BEDROCK_AWS_SESSION_TOKEN")
        credentials |= {"aws_session_token": token} if token else {}
    elif bearer is None and (profile := wallet.get("BEDROCK_AWS_PROFILE")):
        credentials["aws_profile_name"] = profile
    return Account("bedrock", api_key=bearer, base_url=address, credentials=credentials, route="converse/")


def _bedrock_keys(bearer: str | None) -> tuple[str]:
    return ("BEDROCK_AWS_BEARER_TOKEN",) if bearer == USER_PROVIDED else ("BEDROCK_AWS_SECRET_ACCESS_KEY",)


def _service_key(value: str) -> str:
    """A path, or the key's JSON, which may have been put into base64 to fit one line."""
    try:
        decoded = base64.b64decode(value, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return value
    return decoded if decoded.lstrip().startswith("{") else value


_ACCOUNTS: Mapping[str, Callable[[_Wallet, str, Mapping[str, Any]], Account]] = {
    "openAI": _openai,
    "azureOpenAI": _azure,
    "anthropic": _anthropic,
    "google": _google,
    "vertexai": _vertex,
    "bedrock": _bedrock,
}
