"""Values that are risky as they are written: secrets in clear, and words that YAML's versions read differently."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memagent.config.check.draft import dotted
from memagent.config.findings import LibreChat
from memagent.config.secrecy import PUBLIC_VALUES, is_secret_name, looks_secret

if TYPE_CHECKING:
    from memagent.config.check.draft import Draft, Path
    from memagent.config.nodes import Scalar

MIN_SECRET_CHARS = 12
"""Shorter values under a secret's name are words like `ollama` or `sk-1234`, put there because something must be."""

READINGS = (
    (re.compile(r"(?:yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)\Z"), "a boolean", "a text"),
    (
        re.compile(r"[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z"),
        "a number to the base of 60",
        "a text",
    ),
    (re.compile(r"[-+]?0[0-7]+\Z"), "an octal number", "a decimal number"),
    (re.compile(r"0o[0-7]+\Z"), "a text", "an octal number"),
    (
        re.compile(r"[-+]?(?:[0-9]+(?:_[0-9]+)+(?:\.[0-9_]*)?|0x[0-9a-fA-F]*_[0-9a-fA-F_]+)\Z"),
        "a number",
        "a text",
    ),
    (re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][0-9]+\Z|[-+]?[0-9]+[eE][-+][0-9]+\Z"), "a text", "a number"),
)
"""Plain words, what YAML 1.1 makes of them, and what js-yaml makes of them (spec/librechat.md §2.2)."""


def check_plain(draft: Draft, path: Path, scalar: Scalar) -> None:
    """Judge one scalar that no other finding is about."""
    if isinstance(scalar.value, str) and _is_secret_in_clear(path, scalar.value):
        draft.add(
            "MEM405",
            path,
            f"`{dotted(path)}` holds a secret in clear",
            span=draft.key_span(path),
            librechat=LibreChat.ACCEPTS,
            helps=("put it into an environment variable and write `${NAME}` here",),
            notes=("whoever can read this file, its backups or its history can read the secret",),
        )
    elif scalar.plain and (readings := _readings(scalar.raw)):
        older, newer = readings
        draft.add(
            "MEM401",
            path,
            f"`{scalar.raw}` is {newer} for LibreChat and {older} for tools that read YAML 1.1",
            span=draft.value_span(path),
            librechat=LibreChat.ACCEPTS,
            helps=(
                "put quotes around a text; write a number in plain digits, a boolean as `true` or `false`",
            ),
        )


def _is_secret_in_clear(path: Path, value: str) -> bool:
    if looks_secret(value):
        return True
    names = [part for part in path if isinstance(part, str)]
    if not names or "${" in value or "{{" in value or value.strip().lower() in PUBLIC_VALUES:
        return False
    secret = value.strip().removeprefix("Bearer ").removeprefix("Basic ")
    return is_secret_name(names[-1]) and len(secret) >= MIN_SECRET_CHARS and " " not in secret


def _readings(raw: str) -> tuple[str, str] | None:
    return next(((older, newer) for pattern, older, newer in READINGS if pattern.match(raw)), None)
