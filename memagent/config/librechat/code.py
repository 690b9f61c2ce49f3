"""Where the code of agents runs (`endpoints.agents.statefulCodeSessions`; spec/librechat.md §2.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memagent.config.librechat.access import LOCAL_HOSTS
from memagent.config.librechat.names import SLUG
from memagent.config.librechat.urls import is_url, url_parts
from memagent.config.zod import (
    FLAG,
    OFF,
    Choice,
    Default,
    List,
    Needed,
    Number,
    Object,
    Refined,
    Run,
    Strict,
    Text,
    rule,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memagent.config.zod import Problem


def _is_base(text: str) -> bool:
    parts = url_parts(text)
    if parts is None or parts.protocol not in ("http:", "https:"):
        return False
    return "?" not in text and "#" not in text


def _is_safe(text: str) -> bool:
    """HTTPS, or HTTP to this machine."""
    parts = url_parts(text)
    if parts is None or parts.protocol not in ("https:", "http:"):
        return False
    return parts.protocol == "https:" or parts.hostname in LOCAL_HOSTS


DECISION: Final = Choice("allow", "ask", "deny")


def _permitted(field: dict[str, Any], _run: Run) -> Iterable[Problem]:
    if field["default"] not in field["allowed"]:
        yield ("default",), "Permission default must be included in allowed values"


PERMISSION: Final = Refined(
    Strict(allowed=Needed(List(DECISION, min=1)), default=Default(DECISION, "ask")), _permitted
)


def _paired(pairing: dict[str, Any], _run: Run) -> Iterable[Problem]:
    if pairing.get("workerId") is None and not pairing["allowPrincipalWorkers"]:
        yield (), "Pairing requires a workerId or principal workers"


ENVIRONMENT: Final = Object(
    id=Needed(SLUG),
    name=Needed(Text(min=1, max=100)),
    type=Needed(Choice("managed", "attached")),
    baseURL=Needed(
        Refined(
            Text(trim=True, url=is_url),
            rule(_is_base, "Code environment baseURL must be an HTTP(S) base URL without query or fragment"),
        )
    ),
    default=FLAG,
    workerId=SLUG,
    owner=Default(Choice("deployment", "principal"), "deployment"),
    configSchema=Strict(
        permissions=Strict(fileWrite=PERMISSION, commandExecution=PERMISSION),
        limits=Strict(
            maxCommandTimeoutMs=Number(int=True, min=1, max=300_000),
            maxQueueWaitMs=Number(int=True, min=0, max=300_000),
        ),
    ),
    settings=Strict(permissions=Strict(fileWrite=DECISION, commandExecution=DECISION)),
    pairing=Refined(
        Object(
            workerId=SLUG,
            allowPrincipalWorkers=OFF,
            tokenEnv=Needed(Text(pattern=r"[A-Za-z_][A-Za-z0-9_]*\Z")),
        ),
        _paired,
    ),
)


def _environments(sessions: dict[str, Any], _run: Run) -> Iterable[Problem]:
    seen: set[str] = set()
    executable = defaults = 0
    for environment in sessions.get("environments", ()):
        pairing_only = _is_pairing_only(environment)
        for field, message in _pairing_problems(environment, pairing_only=pairing_only):
            yield ("environments", environment["id"], field), message
        if environment["id"] in seen:
            yield ("environments",), f"Duplicate code environment id: {environment['id']}"
        seen.add(environment["id"])
        if not pairing_only:
            executable += 1
            defaults += environment.get("default") is True
    if executable and defaults != 1:
        yield ("environments",), "Exactly one stateful code environment must be the default"


def _is_pairing_only(environment: dict[str, Any]) -> bool:
    pairing = environment.get("pairing", {})
    return bool(
        pairing.get("allowPrincipalWorkers")
        and pairing.get("workerId") is None
        and environment.get("workerId") is None
    )


def _pairing_problems(environment: dict[str, Any], *, pairing_only: bool) -> Iterable[tuple[str, str]]:
    """Field and message of what is wrong with one environment's pairing."""
    pairing = environment.get("pairing")
    if pairing is not None:
        if environment["type"] != "attached":
            yield "pairing", "Only attached code environments may configure pairing"
        if environment["owner"] != "deployment":
            yield "pairing", "Only deployment-owned code environments may configure pairing"
        if not _is_safe(environment["baseURL"]):
            yield "baseURL", "Paired code environments require HTTPS outside loopback development"
        workers = environment.get("workerId"), pairing.get("workerId")
        if None not in workers and workers[0] != workers[1]:
            yield "workerId", "Code environment workerId must match pairing.workerId"
    if pairing_only and environment.get("default") is True:
        yield "default", "Pairing-only code control planes cannot be execution defaults"


CODE_SESSIONS: Final = Refined(
    Object(
        allowedEnvironments=Needed(List(Choice("user", "agent-user", "conversation"), min=1)),
        principalWorkers=Object(enabled=FLAG, maxPerUser=Number(int=True, min=0, max=9_007_199_254_740_991)),
        conversationMoves=Object(enabled=FLAG),
        environments=List(ENVIRONMENT),
    ),
    _environments,
)
