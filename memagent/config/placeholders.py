"""Placeholders: `${NAME}` of the environment, `{{NAME}}` of a user and a turn, `{{current_date}}` of a prompt.

Each text is expanded in one pass per kind, environment first, and what was put in is never looked at again: a user who is
called `${SECRET}` or `{{LIBRECHAT_USER_EMAIL}}` stays called that (spec/librechat.md §3.5).
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING

from memagent.errors import ModelRefused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

UNRESOLVABLE = frozenset(
    {
        "JWT_SECRET",
        "JWT_REFRESH_SECRET",
        "CREDS_KEY",
        "CREDS_IV",
        "MEILI_MASTER_KEY",
        "MONGO_URI",
        "REDIS_URI",
        "REDIS_PASSWORD",
    }
)
"""The server's own secrets: no file may read them out of the environment (spec/librechat.md §3.2)."""

USER_FIELDS = (
    "id",
    "name",
    "username",
    "email",
    "provider",
    "role",
    "googleId",
    "facebookId",
    "openidId",
    "samlId",
    "ldapId",
    "githubId",
    "discordId",
    "appleId",
    "emailVerified",
    "twoFactorEnabled",
    "termsAccepted",
    "termsAcceptedAt",
    "tenantId",
)
"""What a header may tell about a user, under LibreChat's names; anything else about them stays here."""

_ENCODED_FIELDS = frozenset({"name", "username", "email"})
_CREDENTIALS = frozenset({"ACCESS_TOKEN", "TOKEN", "ID_TOKEN"})

_JS_SPACE = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_WHOLE = re.compile(r"\$\{([^\n\r\u2028\u2029]+)\}")
_PART = re.compile(r"\$\{([^}]+)\}")

_USER_KEYS = {name.upper(): name for name in USER_FIELDS} | {"TENANT_ID": "tenantId"}
_OPENID_KEYS = {
    "ACCESS_TOKEN": "access_token",
    "TOKEN": "access_token",
    "ID_TOKEN": "id_token",
    "USER_ID": "user_id",
    "USER_EMAIL": "user_email",
    "USER_NAME": "user_name",
    "EXPIRES_AT": "expires_at",
}
_BODY_KEYS = {
    "CONVERSATIONID": "conversation_id",
    "PARENTMESSAGEID": "parent_message_id",
    "MESSAGEID": "message_id",
}
OPENID_FIELDS, BODY_FIELDS = tuple(_OPENID_KEYS), tuple(_BODY_KEYS)
"""What may follow `LIBRECHAT_OPENID_` and `LIBRECHAT_BODY_`; the fields of `LIBRECHAT_USER_` are `USER_FIELDS`."""

_KNOWN = (
    rf"LIBRECHAT_USER_(?P<user>{'|'.join(_USER_KEYS)})"
    rf"|LIBRECHAT_OPENID_(?P<openid>{'|'.join(_OPENID_KEYS)})"
    rf"|LIBRECHAT_BODY_(?P<body>{'|'.join(_BODY_KEYS)})"
)
_ANY = re.compile(r"\$\{[^}]+\}|\{\{[^{}]+\}\}")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class OpenId:
    """Tokens of a session that is valid now; whoever builds this has checked that they have not expired."""

    access_token: str | None = field(default=None, repr=False)
    id_token: str | None = field(default=None, repr=False)
    user_id: str | None = None
    user_email: str | None = field(default=None, repr=False)
    user_name: str | None = field(default=None, repr=False)
    expires_at: str | None = None


@dataclass(frozen=True, slots=True)
class UserFields:
    """The user of one turn, as far as headers and prompts may know them.

    `fields` are named as in `USER_FIELDS`, without `id`; others are never read. `variables` are the user's own custom
    variables, which go before every other placeholder of the same name.
    """

    id: str = ""
    fields: Mapping[str, str | bool | None] = field(default_factory=dict, repr=False)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    openid: OpenId | None = None

    def text(self, name: str) -> str:
        """One field as a header has it: booleans as `true` and `false`, what is absent as nothing."""
        value = self.id if name == "id" else self.fields.get(name)
        if isinstance(value, bool):
            return "true" if value else "false"
        return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class BodyIds:
    """The ids of one turn."""

    conversation_id: str = ""
    message_id: str = ""
    parent_message_id: str = ""


def expand_env(text: str, environ: Mapping[str, str]) -> str:
    """`text` with `${NAME}` replaced from `environ`, and trimmed as JavaScript trims (spec/librechat.md §3.2).

    Unset, empty and unresolvable names stay as they are written. A text that opens with `${` and closes with `}` counts
    as one name, so `${A}${B}` stays; what a variable holds is not expanded.
    """
    trimmed = text.strip(_JS_SPACE)

    def value(match: re.Match[str]) -> str:
        name = match[1]
        return ("" if name in UNRESOLVABLE else environ.get(name, "")) or match[0]

    whole = _WHOLE.fullmatch(trimmed)
    return value(whole) if whole else _PART.sub(value, trimmed)


def is_unresolved(text: str) -> bool:
    """Whether an expanded text is still nothing but one `${NAME}`."""
    return _WHOLE.fullmatch(text) is not None


def render_header(
    template: str, *, environ: Mapping[str, str], user: UserFields, body: BodyIds
) -> str | None:
    """The value to send for one header of the file, or None where the header must be left out.

    A known placeholder without a value becomes nothing, an unknown one stays as it is written, and a header that asks for
    an OpenID token which this user does not have is left out. Control characters, line breaks among them, become spaces
    as RFC 9110 §5.5 provides, wherever they come from: no value can open a second header.
    """
    missing_credential = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing_credential
        own = match.groupdict().get("own")
        if own is not None:
            return user.variables[own]
        if match["user"]:
            return _user_text(user, _USER_KEYS[match["user"]])
        if match["body"]:
            return str(getattr(body, _BODY_KEYS[match["body"]]))
        found = getattr(user.openid, _OPENID_KEYS[match["openid"]], None)
        missing_credential |= not found and match["openid"] in _CREDENTIALS
        return found or ""

    text = _pattern(user.variables).sub(value, expand_env(template, environ))
    return None if missing_credential else _CONTROL.sub(" ", text).strip(" \t")


def render_headers(
    templates: Mapping[str, str], *, environ: Mapping[str, str], user: UserFields, body: BodyIds
) -> dict[str, str]:
    """All headers of an endpoint for one turn; raises `ModelRefused` for one that HTTP cannot carry."""
    rendered: dict[str, str] = {}
    for name, template in templates.items():
        value = render_header(template, environ=environ, user=user, body=body)
        if value is None:
            continue
        if not _HEADER_NAME.fullmatch(name):
            raise ModelRefused(
                f"`{name!a}` in `headers` is not a header name: use letters, digits and hyphens"
            )
        if any(char > "\xff" for char in value):
            raise ModelRefused(
                f"the value of header `{name}` has characters outside Latin-1, which HTTP cannot carry: "
                "write it in ASCII, or take it from a placeholder that is encoded "
                "(`{{LIBRECHAT_USER_NAME}}`, `{{LIBRECHAT_USER_USERNAME}}`, `{{LIBRECHAT_USER_EMAIL}}`)"
            )
        rendered[name] = value
    return rendered


def merge_headers(base: Mapping[str, str], override: Mapping[str, str]) -> dict[str, str]:
    """Both maps as one; names match in any case, `override` wins, `anthropic-beta` keeps the values of both sides."""
    merged = dict(base)
    for name, value in override.items():
        same = next((known for known in merged if known.lower() == name.lower()), None)
        earlier = merged.pop(same) if same is not None else ""
        merged[name] = _union(earlier, value) if earlier and name.lower() == "anthropic-beta" else value
    return merged


def mask(template: str) -> str:
    """`template` without what it holds: placeholders by name, everything else as `***`."""
    shown, end = "", 0
    for match in _ANY.finditer(template):
        shown += ("***" if match.start() > end else "") + match[0]
        end = match.end()
    return shown + ("***" if end < len(template) else "")


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SPECIAL = re.compile(
    r"\{\{\s*(current_date|current_datetime|iso_datetime|current_user)\s*\}\}", re.IGNORECASE
)


def expand_special(text: str, *, now: datetime, user_name: str = "") -> str:
    """Instructions with their special variables filled in (spec/librechat.md §3.4).

    `now` is aware, and its zone is the one that dates are told in. `{{current_user}}` stays as it is written when there is
    no name; a name is one line, so that it cannot start a paragraph of instructions.
    """
    day = f"({_WEEKDAYS[now.weekday()]})"
    offset = now.strftime("%z")
    values = {
        "current_date": f"{now:%Y-%m-%d} {day}",
        "current_datetime": f"{now:%Y-%m-%d %H:%M:%S} {offset[:3]}:{offset[3:5]} {day}",
        "iso_datetime": now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "current_user": " ".join(user_name.split()),
    }
    return _SPECIAL.sub(lambda match: values[match[1].lower()] or match[0], text)


def _pattern(variables: Mapping[str, str]) -> re.Pattern[str]:
    names = sorted((re.escape(name) for name in variables if name), key=len, reverse=True)
    own = f"(?P<own>{'|'.join(names)})|" if names else ""
    return re.compile(rf"\{{\{{(?:{own}{_KNOWN})\}}\}}")


def _user_text(user: UserFields, name: str) -> str:
    text = user.text(name)
    if name in _ENCODED_FIELDS and any(char > "\xff" for char in text):
        return "b64:" + base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    return text


def _union(first: str, second: str) -> str:
    values = (value.strip() for value in f"{first},{second}".split(","))
    return ",".join(dict.fromkeys(value for value in values if value))
