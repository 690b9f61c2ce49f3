"""URLs as `new URL()` judges them, and environment variables inside them (spec/librechat.md §3.2)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memagent.config.zod import SPACES, TEXT, Crash, Piped, Refined, Run, Text, Transformed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memagent.config.zod import Problem, Schema

PLAIN = re.compile(
    r"(?P<scheme>https?|wss?)://(?P<host>(?:(?!xn--)[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)*(?!xn--)[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?)"
    r"(?::[0-9]{1,4})?(?P<rest>[/?#].*)?\Z",
    re.DOTALL,
)
"""URLs that need no parser to be seen valid: letters lead every label, so nothing is an IP address or punycode."""

SECRET_VARIABLES: Final = frozenset({
    "JWT_SECRET", "JWT_REFRESH_SECRET", "CREDS_KEY", "CREDS_IV",
    "MEILI_MASTER_KEY", "MONGO_URI", "REDIS_URI", "REDIS_PASSWORD",
})  # fmt: skip
"""LibreChat never puts these into a configured text."""


class Parts(NamedTuple):
    """What the rules look at. `protocol` ends in a colon."""

    protocol: str
    hostname: str
    query: str
    fragment: str


def url_parts(text: str) -> Parts | None:
    """The parts of a URL, or None where `new URL()` throws."""
    match = PLAIN.match(text)
    if match is not None:
        rest, _, fragment = (match["rest"] or "").partition("#")
        query = rest.partition("?")[2]
        return Parts(match["scheme"] + ":", match["host"].lower(), query, fragment)
    # The parser that Node itself uses; importing it costs more than a whole file, so only unusual URLs pay for it.
    from ada_url import URL, idna_to_unicode  # noqa: PLC0415

    try:
        url = URL(text)
    except ValueError:
        return None
    if any(label.startswith("xn--") for label in idna_to_unicode(url.hostname).split(".")):
        # Punycode that means nothing: the parser has grown lenient, that of Node 20 and 22 is not.
        return None
    return Parts(url.protocol, url.hostname, url.search.removeprefix("?"), url.hash.removeprefix("#"))


def is_url(text: str) -> bool:
    return url_parts(text) is not None


def substituted(text: str, environ: Mapping[str, str]) -> str:
    """`text` with its `${NAME}` parts replaced as LibreChat does it: trimmed, and unset or empty names left as they are.

    A text that starts with `${` and ends with `}` is one single name, so `${A}${B}` stays.
    """
    text = text.strip(SPACES)
    whole = re.match(r"\$\{([^\n\r\u2028\u2029]+)\}\Z", text)
    if whole is not None:
        return _value(whole[1], environ) or text
    return re.sub(r"\$\{([^}]+)\}", lambda match: _value(match[1], environ) or match[0], text)


def _value(name: str, environ: Mapping[str, str]) -> str | None:
    return None if name in SECRET_VARIABLES else environ.get(name)


def _substitute(value: Any, run: Run) -> Any:
    return substituted(value, run.environ) if value else value


URL: Final = Piped(Transformed(TEXT, _substitute), Text(url=is_url))
"""A URL once its variables are replaced."""


def url_with(protocols: tuple[str, ...], message: str, *, allowed: bool = True) -> Schema:
    """A URL whose protocol is one of some, or none of them.

    Reading one that is no URL at all throws: the rule parses what has been found invalid already.
    """

    def check(value: str, _run: Run) -> Iterable[Problem]:
        parts = url_parts(value)
        if parts is None:
            raise Crash("Invalid URL")
        return () if (parts.protocol in protocols) is allowed else (((), message),)

    return Refined(URL, check)
