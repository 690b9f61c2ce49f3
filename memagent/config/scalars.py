"""Scalars: what js-yaml 4.3 makes of a plain word (spec/librechat.md §2.2), and how JavaScript writes it as a string.

Numbers are doubles in JavaScript: an integer here is exact up to 2**53 and a float beyond.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

MAX_SAFE_INTEGER = 2**53
DAYS_IN_400_YEARS = 146_097
LONGEST_FINITE_DIGITS = 400
"""No decimal with more significant digits than this is finite as a double."""


@dataclass(frozen=True, slots=True)
class Date:
    """A JavaScript Date: milliseconds since 1970 in UTC. Months and days overflow (2024-02-30 is 1 March)."""

    epoch_ms: int

    def __str__(self) -> str:
        """As `String(date)` prints it on a machine that runs in UTC."""
        days, rest = divmod(self.epoch_ms, 86_400_000)
        # 400 years are a whole number of weeks: the shift changes nothing but the year.
        cycles, days = divmod(days, DAYS_IN_400_YEARS)
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=days, milliseconds=rest)
        year = moment.year + 400 * cycles
        sign = "-" if year < 0 else ""
        return (
            f"{moment:%a %b %d} {sign}{abs(year):04d} {moment:%H:%M:%S} GMT+0000 (Coordinated Universal Time)"
        )


Value: TypeAlias = bool | int | float | str | bytes | Date | None

NUMBER = re.compile(
    r"[-+]?(?:0b(?P<bits>[01]+)|0x(?P<hex>[0-9a-fA-F]+)|0o(?P<oct>[0-7]+)|(?P<digits>[0-9]+))\Z"
    r"|(?:[-+]?[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z"
    r"|(?P<infinity>[-+]?\.(?:inf|Inf|INF))\Z"
    r"|\.(?:nan|NaN|NAN)\Z",
)
TIMESTAMP = (
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})\Z"
    r"|([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:[Tt]|[ \t]+)([0-9]{1,2}):([0-9]{2}):([0-9]{2})"
    r"(?:\.([0-9]*))?(?:[ \t]*(?:Z|([-+])([0-9]{1,2})(?::([0-9]{2}))?))?\Z"
)
WORDS: dict[str, Value] = {
    "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
STARTS_OF_TYPED = frozenset("0123456789+-.~nNtTfF")
"""A plain scalar that starts with none of these is a string."""


def is_nan(value: object) -> bool:
    return value != value  # noqa: PLR0124 - NaN is the one value that differs from itself


def number(text: str) -> int | float | None:  # noqa: PLR0911 - one for each way to write a number
    """The number that `text` spells, or None. Finite, or one of the spelled-out infinities and NaN."""
    match = NUMBER.match(text)
    if match is None:
        return None
    kind = match.lastgroup
    if kind is None:
        value = float("nan") if text[-1] in "nN" else float(text)
        return None if value in (float("inf"), float("-inf")) else value
    if kind == "infinity":
        return float("-inf") if text[0] == "-" else float("inf")
    digits = match[kind].lstrip("0") or "0"
    if len(digits) > LONGEST_FINITE_DIGITS and kind != "bits":
        return None
    whole = int(digits, {"bits": 2, "hex": 16, "oct": 8, "digits": 10}[kind])
    if whole > MAX_SAFE_INTEGER:
        try:
            double = float(whole)
        except OverflowError:
            return None
        return -double if text[0] == "-" else double
    return -whole if text[0] == "-" else whole


def date(text: str) -> Date | None:
    """The moment that `text` spells, or None."""
    match = re.match(TIMESTAMP, text)
    if match is None:
        return None
    if match[1]:
        return Date(_utc(int(match[1]), int(match[2]), int(match[3])))
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[3:9])
    fraction = int((match[10] or "")[:3].ljust(3, "0"))
    moment = _utc(year, month, day) + ((hour * 60 + minute) * 60 + second) * 1000 + fraction
    if match[11]:
        shift = (int(match[12]) * 60 + int(match[13] or 0)) * 60_000
        moment += shift if match[11] == "-" else -shift
    return Date(moment)


def _utc(year: int, month: int, day: int) -> int:
    """Milliseconds of a day whose month and day may overflow; years 0 to 99 are 1900 to 1999, as in `Date.UTC`."""
    year = year + 1900 if year <= 99 else year  # noqa: PLR2004 - the rule of Date.UTC
    carry, month0 = divmod(month - 1, 12)
    year += carry
    cycles = 1 if year > 9999 else 0  # noqa: PLR2004 - the last year that datetime knows
    first = datetime(year - 400 * cycles, month0 + 1, 1, tzinfo=UTC)
    days = (first - datetime(1970, 1, 1, tzinfo=UTC)).days + DAYS_IN_400_YEARS * cycles
    return (days + day - 1) * 86_400_000


def resolve(text: str) -> Value:
    """What an untagged plain scalar means: null, boolean, number, Date, or the text itself."""
    if text[:1] not in STARTS_OF_TYPED:
        return text
    if text in WORDS:
        return WORDS[text]
    if text[0] in "nNtTfF~":
        return text
    value = number(text)
    if value is not None:
        return value
    return date(text) or text


def binary(text: str) -> bytes | None:
    """The bytes of `!!binary` text, or None where js-yaml refuses it."""
    kept = re.sub(r"[\r\n]", "", text)
    body = kept.replace("=", "")
    if len(kept) * 6 % 8 or re.match(r"[A-Za-z0-9+/]*+\Z", body) is None:
        return None
    if not body:
        return bytes(3)  # js-yaml's own oddity: nothing decodes to three zero bytes
    whole = body[:-1] if len(body) % 4 == 1 else body
    return a2b_base64(whole + "=" * (-len(whole) % 4))


def number_text(value: float) -> str:
    """As JavaScript's `String(number)` writes it."""
    if is_nan(value):
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == int(value) and abs(value) < 1e21:  # noqa: PLR2004 - from here on JavaScript writes exponents
        return str(int(value))
    mantissa, _, exponent = repr(float(value)).partition("e")
    power = int(exponent or 0)
    if not exponent:
        return mantissa
    sign, digits = ("-", mantissa[1:]) if mantissa[0] == "-" else ("", mantissa)
    whole, _, rest = digits.partition(".")
    rest = "" if rest == "0" else rest
    if -7 < power < 0:  # noqa: PLR2004 - from here on JavaScript writes exponents
        return f"{sign}0.{'0' * (-power - 1)}{whole}{rest}"
    return f"{sign}{whole}{'.' + rest if rest else ''}e{'+' if power > 0 else '-'}{abs(power)}"


def text_of(value: Value) -> str:
    """As JavaScript's `String(value)` writes a scalar."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return ",".join(str(byte) for byte in value)
    if isinstance(value, Date):
        return str(value)
    return number_text(value)
