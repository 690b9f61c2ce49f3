"""Private addresses that LibreChat may be allowed to call: `allowedAddresses` (spec/librechat.md §2.7)."""

from __future__ import annotations

import re
from typing import Final

from memagent.config.zod import SPACES, TEXT, List, Refined, rule

IPV4: Final = r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\Z"


def is_private_ipv4(text: str) -> bool:
    match = re.match(IPV4, text)
    if match is None:
        return False
    first, second, third = (int(part) for part in match.groups()[:3])
    return (
        first in (0, 10, 127)
        or first >= 224  # noqa: PLR2004 - multicast and reserved
        or (first, second) in ((169, 254), (192, 168), (198, 18), (198, 19))
        or (first == 172 and 16 <= second <= 31)  # noqa: PLR2004 - RFC 1918
        or (first == 100 and 64 <= second <= 127)  # noqa: PLR2004 - RFC 6598
        or (first, second, third) == (192, 0, 0)
    )


def is_private_ipv6(text: str) -> bool:
    if ":" not in text:
        return False
    if text in ("::1", "::") or text.startswith(("fc", "fd")):
        return True
    head = text.split(":", 1)[0]
    if re.match(r"[0-9a-f]{1,4}\Z", head) and int(head, 16) & 0xFFC0 == 0xFE80:  # noqa: PLR2004 - fe80::/10
        return True
    if re.match(r"::ffff:[0-9.]+\Z", text) and re.match(IPV4, text[7:]):
        return is_private_ipv4(text[7:])
    return _carries_private_ipv4(text)


def _carries_private_ipv4(text: str) -> bool:
    """Whether 6to4, NAT64 or Teredo wrap a private IPv4 address; Teredo keeps its complement (RFC 4380)."""
    if not text.startswith(("2002:", "64:ff9b::", "2001::")):
        return False
    parts = [part for part in text.split(":") if part]
    pair = parts[1:3] if text.startswith("2002:") else parts[-2:]
    numbers = [re.match(r"[0-9a-f]+", part) for part in pair]
    if len(pair) != 2 or None in numbers:  # noqa: PLR2004 - the two halves of an IPv4 address
        return False
    high, low = (int(match[0], 16) for match in numbers if match)
    if text.startswith("2001::"):
        high, low = ~high, ~low
    return is_private_ipv4(
        ".".join(str(byte) for byte in (high >> 8 & 255, high & 255, low >> 8 & 255, low & 255))
    )


def _host(entry: str) -> str | None:
    """The host of a `host:port` or `[ipv6]:port` entry, or None where it is neither."""
    text = entry.lower().strip(SPACES)
    match = re.match(r"\[([^\]]+)\]:([0-9]+)\Z", text) or re.match(r"([^:]+):([0-9]+)\Z", text)
    if match is None or not 1 <= int(match[2][-6:].rjust(1, "0")) <= 65_535 or len(match[2].lstrip("0")) > 5:  # noqa: PLR2004 - ports
        return None
    return re.sub(r"\A\[|\]\Z", "", match[1]) or None


def _is_local(entry: str) -> bool:
    host = _host(entry)
    if host is None:
        return False
    if re.match(IPV4, host):
        return is_private_ipv4(host)
    return ":" not in host or is_private_ipv6(host)


ADDRESS: Final = Refined(
    TEXT,
    rule(lambda entry: entry.strip(SPACES), "allowedAddresses entries must be non-empty"),
    rule(
        lambda entry: "/" not in entry and not any(char in SPACES for char in entry),
        "allowedAddresses entries must be host:port pairs — no URLs, paths, CIDR ranges, or whitespace",
    ),
    rule(
        lambda entry: _host(entry) is not None,
        "allowedAddresses entries must include a port, for example localhost:11434 or [::1]:11434",
    ),
    rule(
        _is_local,
        "allowedAddresses is scoped to private IP space — public IP literals are not permitted "
        "(use hostname:port if it resolves to a private IP)",
    ),
)
ADDRESSES: Final = List(ADDRESS)
