"""When a session ends by itself: a daily hour in a zone, or idle minutes. Pure: time is an argument."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memagent.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_HOUR = 4
"""The dead hour between yesterday's evening and today's morning."""
LAST_HOUR = 23
LOCAL = "local"
LOCAL_RULES = Path("/etc/localtime")
"""The machine's zone with its clock changes; the offset of this moment alone would be wrong half of the year."""


class ResetMode(StrEnum):
    DAILY = "daily"
    IDLE = "idle"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ResetRule:
    """What an administrator wrote; what is None is left to the rule behind it. `at_hour` may be anything (V21)."""

    mode: ResetMode | None = None
    at_hour: object = None
    idle_minutes: float | None = None


@dataclass(frozen=True, slots=True)
class ResetPolicy:
    """The rules that hold for one session. `idle_minutes` 0 never expires; daily and idle together: the first (O14)."""

    daily: bool = True
    at_hour: int = DEFAULT_HOUR
    idle_minutes: float = 0


@dataclass(frozen=True, slots=True)
class ResetSettings:
    """`by_channel` replaces everything else, the fields of `by_type` come before those of `base` (O14).

    Types are `direct` (or its old name `dm`), `group` and `thread`. `idle_minutes` alone means idle mode. `zone` is an
    IANA name or `local`.
    """

    base: ResetRule | None = None
    by_type: Mapping[str, ResetRule] = field(default_factory=dict)
    by_channel: Mapping[str, ResetRule] = field(default_factory=dict)
    idle_minutes: float | None = None
    zone: str = LOCAL

    def policy(self, *, kind: str, channel: str = "") -> ResetPolicy:
        override = self.by_channel.get(channel)
        rules = [override] if override else [self._type(kind), self.base]
        present = [rule for rule in rules if rule is not None]
        idle = next((rule.idle_minutes for rule in present if rule.idle_minutes is not None), None)
        if idle is None and not override:
            idle = self.idle_minutes
        mode = next((rule.mode for rule in present if rule.mode is not None), None)
        if mode is None:
            mode = ResetMode.IDLE if not present and self.idle_minutes is not None else ResetMode.DAILY
        if mode is ResetMode.NONE:
            return ResetPolicy(daily=False)
        at_hour = next((rule.at_hour for rule in present if rule.at_hour is not None), None)
        return ResetPolicy(mode is ResetMode.DAILY, hour(at_hour), max(idle or 0, 0))

    def _type(self, kind: str) -> ResetRule | None:
        rule = self.by_type.get(kind)
        return self.by_type.get("dm") if rule is None and kind == "direct" else rule


def hour(value: object) -> int:
    """The hour of a setting: whole, within 0 to 23; 4 for what is no number (V21)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return DEFAULT_HOUR
    return math.floor(min(max(value, 0), LAST_HOUR))


@cache
def zone(name: str) -> ZoneInfo:
    """The time zone; `local` is this machine's, UTC where it has none. Raises `BadRequest` for a name that is none."""
    if name == LOCAL:
        return _machine_zone()
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadRequest(f"unknown time zone {name!r}; use an IANA name such as Europe/Berlin") from error


def _machine_zone() -> ZoneInfo:
    try:
        with LOCAL_RULES.open("rb") as rules:
            return ZoneInfo.from_file(rules, key=LOCAL)
    except (OSError, ValueError):
        return ZoneInfo("UTC")


def daily_boundary(now: datetime, *, at_hour: int, zone_name: str) -> datetime:
    """The latest daily reset at or before `now`, in UTC (O12).

    On the day an hour is skipped the reset is at the jump; on the day an hour comes twice, at its first coming.
    """
    place = zone(zone_name)
    today = now.astimezone(place).date()
    boundary = datetime.combine(today, time(at_hour), place).astimezone(UTC)
    if now < boundary:
        yesterday = today - timedelta(days=1)
        boundary = datetime.combine(yesterday, time(at_hour), place).astimezone(UTC)
    return boundary


def stale(policy: ResetPolicy, *, last: datetime, now: datetime, zone_name: str) -> ResetMode | None:
    """Why the session is over, None while it is fresh.

    `last` is the user's last input; at the boundary itself and after exactly the idle minutes it is still fresh (O12, O13).
    A clock that jumps back ends nothing.
    """
    if policy.daily and last < daily_boundary(now, at_hour=policy.at_hour, zone_name=zone_name):
        return ResetMode.DAILY
    if policy.idle_minutes > 0 and now > last + timedelta(minutes=policy.idle_minutes):
        return ResetMode.IDLE
    return None
