"""Who may call the agents from outside (`endpoints.agents.managementApi`, `remoteApi`; spec/librechat.md §2.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memagent.config.librechat.skills import SYSTEM_TENANT
from memagent.config.librechat.urls import is_url, url_parts
from memagent.config.zod import (
    OFF,
    ON,
    SPACES,
    TEXT,
    Default,
    List,
    Literal,
    Needed,
    Object,
    Refined,
    Run,
    Strict,
    Text,
    Transformed,
    rule,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memagent.config.zod import Problem

LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


def _is_safe(text: str) -> bool:
    """HTTPS, or HTTP to this machine."""
    parts = url_parts(text)
    if parts is None or parts.protocol not in ("https:", "http:"):
        return False
    host = parts.hostname.lower()
    return parts.protocol == "https:" or host in LOCAL_HOSTS or host.endswith(".localhost")


OIDC_URL: Final = Refined(Text(url=is_url), rule(_is_safe, "must use https:// unless targeting localhost"))
OIDC: Final = {
    "enabled": OFF,
    "issuer": OIDC_URL,
    "audience": Text(min=1),
    "jwksUri": OIDC_URL,
}


def _issuer(oidc: dict[str, Any]) -> Iterable[Problem]:
    if oidc["enabled"] and not oidc.get("issuer"):
        yield ("issuer",), "issuer is required when OIDC auth is enabled"


def _remote(oidc: dict[str, Any], _run: Run) -> Iterable[Problem]:
    yield from _issuer(oidc)
    if oidc["enabled"] and not oidc.get("audience"):
        yield ("audience",), "audience is required when OIDC auth is enabled"


REMOTE_API: Final = Object(
    auth=Object(
        apiKey=Object(enabled=ON),
        oidc=Refined(
            Object(
                **OIDC,
                scope=Refined(TEXT, rule(lambda scope: "," not in scope, "scopes must be space-separated")),
            ),
            _remote,
        ),
    )
)


def _management(oidc: dict[str, Any], _run: Run) -> Iterable[Problem]:
    yield from _issuer(oidc)
    scoped = oidc.get("tokenUse") == "access" and oidc.get("requiredScopes")
    if oidc["enabled"] and not oidc.get("audience") and not scoped:
        yield (
            ("requiredScopes",),
            "audience or access-token validation with required scopes is required when OIDC auth is enabled",
        )


def _clients(auth: dict[str, Any], _run: Run) -> Iterable[Problem]:
    clients = auth["clients"]
    if auth["oidc"]["enabled"] and not clients:
        yield ("clients",), "at least one client binding is required when management auth is enabled"
    seen = set()
    for index, client in enumerate(clients):
        if client["clientId"] in seen:
            yield ("clients", index, "clientId"), "client IDs must be unique"
        seen.add(client["clientId"])


def _is_scope(text: str) -> bool:
    return bool(text) and not any(char in SPACES for char in text)


CLIENT: Final = Strict(
    clientId=Needed(Text(trim=True, min=1, max=128)),
    subject=Text(trim=True, min=1, max=512),
    userId=Needed(
        Transformed(
            Text(trim=True, pattern=r"[a-fA-F0-9]{24}\Z", message="must be a MongoDB ObjectId"),
            lambda user_id, _run: user_id.lower(),
        )
    ),
    tenantId=Needed(
        Refined(
            Text(
                trim=True,
                min=1,
                max=128,
                pattern=r"[a-zA-Z0-9][a-zA-Z0-9_.-]*\Z",
                message="must be a valid tenant id",
            ),
            rule(lambda tenant: tenant != SYSTEM_TENANT, "system tenant is not allowed"),
        )
    ),
    enabled=ON,
)

MANAGEMENT_API: Final = Strict(
    auth=Refined(
        Strict(
            oidc=Needed(
                Refined(
                    Strict(
                        **OIDC,
                        tokenUse=Literal("access"),
                        requiredScopes=List(
                            Text(
                                trim=True,
                                min=1,
                                max=256,
                                pattern=_is_scope,
                                message="must be a single scope token",
                            ),
                            min=1,
                            max=20,
                        ),
                    ),
                    _management,
                )
            ),
            clients=Default(List(CLIENT, max=100), []),
        ),
        _clients,
    )
)
