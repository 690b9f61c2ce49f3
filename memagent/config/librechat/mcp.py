"""MCP servers and their settings (`mcpServers`, `mcpSettings`; spec/librechat.md §2.7)."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

from memagent.config.librechat.addresses import ADDRESSES
from memagent.config.librechat.urls import URL, substituted, url_with
from memagent.config.zod import (
    ABSENT,
    FLAG,
    HEADERS,
    TEXT,
    TEXTS,
    UNDEFINED,
    Choice,
    Default,
    List,
    Literal,
    Needed,
    Number,
    Object,
    Record,
    Refined,
    Run,
    Text,
    Transformed,
    Union,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memagent.config.zod import Problem


def _is_title(text: str) -> bool:
    """Letters and digits of any script, then marks, spaces, hyphens and both apostrophes too."""
    if text.isascii():
        return re.match(r"[A-Za-z0-9][A-Za-z0-9' -]*\Z", text) is not None
    kinds = [unicodedata.category(char)[0] for char in text]
    return kinds[0] in "LN" and all(
        kind in "LNM" or char in "'\u2019 -" for kind, char in zip(kinds, text, strict=True)
    )


def _client(oauth: dict[str, Any], _run: Run) -> Iterable[Problem]:
    if not oauth.get("client_secret"):
        return
    if not oauth.get("client_id"):
        yield ("client_secret",), "OAuth client_secret requires client_id"
    elif not oauth.get("authorization_url") or not oauth.get("token_url"):
        said = "OAuth client_secret with client_id requires both authorization_url and token_url"
        yield ("client_secret",), said


OAUTH: Final = Refined(
    Object(
        authorization_url=URL,
        token_url=URL,
        client_id=TEXT,
        client_secret=TEXT,
        scope=TEXT,
        redirect_uri=URL,
        token_exchange_method=Choice("default_post", "basic_auth_header", native=True),
        grant_types_supported=TEXTS,
        token_endpoint_auth_methods_supported=TEXTS,
        response_types_supported=TEXTS,
        code_challenge_methods_supported=TEXTS,
        skip_code_challenge_check=FLAG,
        audience=Text(min=1),
        forward_audience_on_refresh=FLAG,
        send_resource_parameter=FLAG,
        revocation_endpoint=URL,
        revocation_endpoint_auth_methods_supported=TEXTS,
    ),
    _client,
)

SERVER: Final = {
    "title": Text(
        pattern=_is_title,
        message="Title must start with a letter or number and can include spaces, hyphens, and apostrophes",
    ),
    "description": TEXT,
    "startup": FLAG,
    "iconPath": TEXT,
    "timeout": Number(int=True, min=0),
    "sseReadTimeout": Number(int=True, above=0),
    "initTimeout": Number(int=True, min=0),
    "oauthRefreshWaitTimeout": Number(int=True, above=0),
    "oauthRefreshCoordination": FLAG,
    "oauthPersistenceWaitTimeout": Number(int=True, above=0, max=840_000),
    "chatMenu": FLAG,
    "serverInstructions": Union(FLAG, TEXT),
    "requiresOAuth": FLAG,
    "oauth": OAUTH,
    "oauth_headers": HEADERS,
    "apiKey": Object(
        key=TEXT,
        source=Needed(Choice("admin", "user")),
        authorization_type=Needed(Choice("basic", "bearer", "custom")),
        custom_header=TEXT,
    ),
    "customUserVars": Record(Object(title=Needed(TEXT), description=Needed(TEXT), sensitive=FLAG)),
}
"""What every server may have."""

WS: Final = ("ws:", "wss:")
PROXY: Final = url_with(
    ("http:", "https:", "socks:", "socks5:"), "Proxy URL must use http://, https://, socks://, or socks5://"
)
REMOTE: Final = {
    "headers": HEADERS,
    "requestHeaders": HEADERS,
    "obo": Object(scopes=Needed(Text(min=1))),
    "proxy": PROXY,
}
"""What servers reached over HTTP may have besides."""


def _environment(env: Any, run: Run) -> Any:
    return env if env is UNDEFINED else {name: substituted(value, run.environ) for name, value in env.items()}


STDIO: Final = Object(
    **SERVER,
    type=Default(Literal("stdio"), "stdio"),
    obo=ABSENT,
    command=Needed(TEXT),
    args=Needed(TEXTS),
    env=Transformed(HEADERS, _environment),
    stderr=Union(Choice("pipe", "ignore", "inherit"), Number(int=True, min=0)),
    cwd=TEXT,
)
WEBSOCKET: Final = Object(
    **SERVER,
    type=Default(Literal("websocket"), "websocket"),
    obo=ABSENT,
    url=Needed(url_with(WS, "WebSocket URL must start with ws:// or wss://")),
)
SSE: Final = Object(
    **SERVER,
    type=Default(Literal("sse"), "sse"),
    **REMOTE,
    url=Needed(url_with(WS, "SSE URL must not start with ws:// or wss://", allowed=False)),
)
STREAMABLE_HTTP: Final = Object(
    **SERVER,
    type=Needed(Union(Literal("streamable-http"), Literal("http"))),
    **REMOTE,
    url=Needed(url_with(WS, "Streamable HTTP URL must not start with ws:// or wss://", allowed=False)),
)

MCP_SERVERS: Final = Record(Union(STDIO, WEBSOCKET, SSE, STREAMABLE_HTTP))

MCP_SETTINGS: Final = Object(
    allowedDomains=TEXTS,
    allowedAddresses=ADDRESSES,
    catalogRecovery=Default(
        Object(
            discoveryBackoffMs=Default(
                List(Number(int=True, above=0, max=86_400_000), min=1, max=8),
                [300000, 600000, 1200000, 1800000],
            ),
            discoveryTimeoutMs=Default(Number(int=True, above=0, max=300_000), 3000),
            discoverySettleGraceMs=Default(Number(int=True, min=0, max=300_000), 10000),
            reauthRetryMs=Default(Number(int=True, above=0, max=86_400_000), 1800000),
            maxStateEntries=Default(Number(int=True, above=0, max=1_000_000), 10000),
            maxDetachedDiscoveries=Default(Number(int=True, above=0, max=1000), 3),
            generationReadTimeoutMs=Default(Number(int=True, above=0, max=10_000), 500),
            authorizationFenceRetryMs=Default(
                List(Number(int=True, min=0, max=60_000), min=1, max=8), [0, 50, 200]
            ),
            authorizationFenceTimeoutMs=Default(Number(int=True, above=0, max=30_000), 1000),
            authorizationFenceRetryIntervalMs=Default(Number(int=True, above=0, max=3_600_000), 30000),
            authorizationFenceRetryBatchSize=Default(Number(int=True, above=0, max=10_000), 100),
        ),
        {},
    ),
)
