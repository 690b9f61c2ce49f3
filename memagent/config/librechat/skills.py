"""Skills fetched from GitHub (`skillSync`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from memagent.config.zod import (
    OFF,
    SPACES,
    Default,
    List,
    Needed,
    Number,
    Object,
    Refined,
    Run,
    Text,
    Transformed,
    rule,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memagent.config.zod import Problem

SYSTEM_TENANT: Final = "__SYSTEM__"

IDENTIFIER: Final = Text(
    min=1,
    max=64,
    pattern=r"[a-zA-Z0-9][a-zA-Z0-9_-]*\Z",
    message="must start with a letter or digit and contain only letters, digits, underscores, or hyphens",
)
REF: Final = Refined(
    Text(min=1, max=255),
    rule(lambda ref: not ref.startswith("/") and not ref.endswith("/"), "must not start or end with a slash"),
    rule(
        lambda ref: not any(part in ref for part in ("..", "//", "\\")),
        "must not contain traversal segments, empty path segments, or backslashes",
    ),
    rule(lambda ref: "@{" not in ref and ref != "@", "must not contain invalid Git ref syntax"),
    rule(lambda ref: not ref.endswith("."), "must not end with a dot"),
    rule(
        lambda ref: not re.search(r"[\x00-\x20\x7f~^:?*\[]", ref),
        "must not contain invalid Git ref characters",
    ),
    rule(
        lambda ref: all(part and part[0] != "." and not part.endswith(".lock") for part in ref.split("/")),
        "must contain valid Git ref path segments",
    ),
)


def _path(value: str, _run: Run) -> str:
    """A folder without the slashes around it; the root is empty."""
    folder = value.strip(SPACES).strip("/")
    return "" if folder == "." else folder


FOLDER: Final = Refined(
    Transformed(Refined(Text(max=500), rule(lambda path: path.strip(SPACES), "must not be empty")), _path),
    rule(
        lambda path: "\\" not in path and ".." not in path,
        "must not contain traversal segments or backslashes",
    ),
    rule(
        lambda path: not path or re.match(r"[a-zA-Z0-9._\-/]+\Z", path),
        "must contain only letters, digits, dots, underscores, hyphens, and slashes",
    ),
    rule(
        lambda path: not path or all(part not in ("", ".") for part in path.split("/")),
        "must not contain empty or dot path segments",
    ),
)


def _credential(source: dict[str, Any], _run: Run) -> Iterable[Problem]:
    if not source.get("credentialKey") and not source.get("token"):
        yield ("credentialKey",), "Either credentialKey or token is required"
    if source.get("credentialKey") and source.get("token"):
        yield ("token",), "Use either credentialKey or token, not both"


SOURCE: Final = Refined(
    Object(
        id=Needed(IDENTIFIER),
        owner=Needed(
            Text(
                min=1,
                max=39,
                pattern=r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?\Z",
                message="must be a valid GitHub owner name",
            )
        ),
        repo=Needed(
            Text(
                min=1, max=100, pattern=r"[a-zA-Z0-9._-]+\Z", message="must be a valid GitHub repository name"
            )
        ),
        ref=Default(REF, "main"),
        paths=Needed(List(FOLDER, min=1)),
        skillDiscoveryDepth=Number(int=True, min=0, max=10),
        credentialKey=IDENTIFIER,
        token=Text(
            trim=True,
            pattern=r"\$\{[A-Za-z_][A-Za-z0-9_]*\}\Z",
            message="must be an environment variable reference like ${GITHUB_SKILLS_TOKEN}",
        ),
        tenantId=Refined(
            Text(max=128),
            rule(lambda text: re.match(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*\Z", text), "must be a valid tenant id"),
            rule(lambda text: text != SYSTEM_TENANT, "must not be the reserved system tenant id"),
        ),
    ),
    _credential,
)


def _sources(github: dict[str, Any], _run: Run) -> Iterable[Problem]:
    sources = github["sources"]
    if github["enabled"] and not sources:
        yield ("sources",), "At least one GitHub source is required when skill sync is enabled"
    seen = set()
    for source in sources:
        if source["id"] in seen:
            yield ("sources",), f'Duplicate GitHub skill sync source id "{source["id"]}"'
        seen.add(source["id"])


SKILL_SYNC: Final = Object(
    github=Refined(
        Object(
            enabled=OFF,
            intervalMinutes=Default(Number(int=True, min=5, max=35_791), 60),
            runOnStartup=OFF,
            sources=Default(List(SOURCE), []),
        ),
        _sources,
    )
)
