"""When sessions end by themselves: O12 to O14 and V17 to V21 of spec/seeds.md; days with a clock change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import tzdata
from hypothesis import given
from hypothesis import strategies as st

from memagent.errors import BadRequest
from memagent.sessions import reset as module
from memagent.sessions.reset import (
    ResetMode,
    ResetPolicy,
    ResetRule,
    ResetSettings,
    daily_boundary,
    hour,
    stale,
)

BERLIN = ZoneInfo("Europe/Berlin")
HANOI = ZoneInfo("Asia/Ho_Chi_Minh")


def at(
    day: int, hour_: int, minute: int = 0, *, zone: ZoneInfo = HANOI, month: int = 3, **more: int
) -> datetime:
    return datetime(2026, month, day, hour_, minute, tzinfo=zone, **more)


def over(
    last: datetime, now: datetime, policy: ResetPolicy | None = None, zone: str = "Asia/Ho_Chi_Minh"
) -> str | None:
    return stale(policy or ResetPolicy(), last=last.astimezone(UTC), now=now.astimezone(UTC), zone_name=zone)


def test_o12_v17_the_boundary_itself_is_fresh() -> None:
    assert over(at(2, 3, 59), at(2, 4, 0)) is ResetMode.DAILY
    assert over(at(2, 3, 59), at(2, 4, 1)) is ResetMode.DAILY
    assert over(at(2, 4, 0), at(2, 23, 59)) is None
    assert over(at(2, 4, 0) - timedelta(microseconds=1), at(2, 23, 59)) is ResetMode.DAILY


def test_o12_v18_before_the_hour_yesterdays_boundary_counts() -> None:
    assert over(at(1, 5, 0), at(2, 3, 30)) is None
    assert over(at(1, 3, 59), at(2, 3, 30)) is ResetMode.DAILY


def test_o12_the_hour_is_that_of_the_configured_zone() -> None:
    last, now = at(2, 3, 59), at(2, 4, 30)
    assert over(last, now, zone="Asia/Ho_Chi_Minh") is ResetMode.DAILY
    assert over(last, now, zone="UTC") is None
    assert over(last, now, zone="Europe/Berlin") is None


def test_o12_a_zone_that_does_not_exist_is_named() -> None:
    with pytest.raises(BadRequest, match="Mars/Base"):
        over(at(2, 3), at(2, 5), zone="Mars/Base")


def test_o12_on_the_day_an_hour_is_skipped_the_reset_is_at_the_jump() -> None:
    # 29 March 2026: 02:00 becomes 03:00 in Berlin, at 01:00 UTC.
    now = datetime(2026, 3, 29, 8, tzinfo=UTC)
    assert daily_boundary(now, at_hour=2, zone_name="Europe/Berlin") == datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert daily_boundary(now, at_hour=4, zone_name="Europe/Berlin") == datetime(2026, 3, 29, 2, tzinfo=UTC)
    assert daily_boundary(now - timedelta(days=1), at_hour=4, zone_name="Europe/Berlin").hour == 3


def test_o12_on_the_day_an_hour_comes_twice_the_reset_is_at_its_first() -> None:
    # 25 October 2026: 03:00 becomes 02:00 in Berlin, at 01:00 UTC.
    first = datetime(2026, 10, 25, 0, tzinfo=UTC)
    for now in (first, first + timedelta(minutes=59), first + timedelta(hours=1), first + timedelta(hours=5)):
        assert daily_boundary(now, at_hour=2, zone_name="Europe/Berlin") == first
    assert (
        over(
            first + timedelta(minutes=5),
            first + timedelta(minutes=65),
            ResetPolicy(at_hour=2),
            "Europe/Berlin",
        )
        is None
    )


@given(st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1)), st.integers(0, 23))  # noqa: DTZ001  made aware below
def test_o12_the_boundary_is_never_ahead_and_never_more_than_a_long_day_behind(
    moment: datetime, at_hour: int
) -> None:
    now = moment.replace(tzinfo=UTC)
    boundary = daily_boundary(now, at_hour=at_hour, zone_name="Europe/Berlin")
    assert timedelta(0) <= now - boundary < timedelta(hours=25)


def test_o13_v19_after_exactly_the_idle_minutes_it_is_still_fresh() -> None:
    policy = ResetPolicy(daily=False, idle_minutes=30)
    last = at(2, 12, 0)
    assert over(last, at(2, 12, 30), policy) is None
    assert over(last, at(2, 12, 30) + timedelta(milliseconds=1), policy) is ResetMode.IDLE


def test_o13_no_minutes_never_expire() -> None:
    assert over(at(2, 12), at(30, 12), ResetPolicy(daily=False, idle_minutes=0)) is None


def test_o14_v20_the_first_of_both_ends_it() -> None:
    policy = ResetPolicy(idle_minutes=60)
    assert over(at(2, 9, 0), at(2, 10, 1), policy) is ResetMode.IDLE
    assert over(at(2, 3, 50), at(2, 4, 10), policy) is ResetMode.DAILY


def test_a_clock_that_jumps_back_ends_nothing() -> None:
    assert over(at(2, 4, 30), at(2, 3, 30), ResetPolicy(idle_minutes=1)) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x", 4),
        (99, 23),
        (-3, 0),
        (5.9, 5),
        (None, 4),
        (True, 4),
        (0, 0),
        (23, 23),
        (float("nan"), 4),
        (float("inf"), 23),
    ],
)
def test_v21_the_hour_of_any_setting(value: object, expected: int) -> None:
    assert hour(value) == expected


def test_the_machines_own_zone_is_the_default_and_knows_its_clock_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert ResetSettings().zone == "local"
    berlin = Path(tzdata.__file__).parent / "zoneinfo" / "Europe" / "Berlin"
    for place, expected in ((berlin, 2), (tmp_path / "none", 4)):
        monkeypatch.setattr(module, "LOCAL_RULES", place)
        module.zone.cache_clear()
        boundary = daily_boundary(datetime(2026, 7, 1, 12, tzinfo=UTC), at_hour=4, zone_name="local")
        assert boundary.hour == expected
    module.zone.cache_clear()


def test_o14_without_settings_it_is_daily_at_4() -> None:
    assert ResetSettings().policy(kind="direct") == ResetPolicy(daily=True, at_hour=4, idle_minutes=0)


def test_o14_minutes_alone_mean_idle_mode() -> None:
    assert ResetSettings(idle_minutes=30).policy(kind="direct") == ResetPolicy(daily=False, idle_minutes=30)


def test_o14_a_rule_by_type_alone_keeps_daily_and_leaves_other_types() -> None:
    settings = ResetSettings(by_type={"thread": ResetRule(ResetMode.IDLE, idle_minutes=10)})
    assert settings.policy(kind="thread") == ResetPolicy(daily=False, idle_minutes=10)
    assert settings.policy(kind="direct") == ResetPolicy()
    assert ResetSettings(by_type={"group": ResetRule(at_hour=6)}).policy(kind="group") == ResetPolicy(
        at_hour=6
    )


def test_o14_fields_of_the_type_come_before_those_of_the_base() -> None:
    settings = ResetSettings(
        base=ResetRule(ResetMode.DAILY, 5, 90), by_type={"group": ResetRule(idle_minutes=10)}
    )
    assert settings.policy(kind="group") == ResetPolicy(daily=True, at_hour=5, idle_minutes=10)
    assert settings.policy(kind="direct") == ResetPolicy(daily=True, at_hour=5, idle_minutes=90)


def test_o14_a_channels_rule_replaces_everything_else() -> None:
    settings = ResetSettings(
        base=ResetRule(ResetMode.DAILY, 5, 90),
        by_type={"direct": ResetRule(idle_minutes=10)},
        by_channel={"sms": ResetRule(ResetMode.NONE), "chat": ResetRule(at_hour=7)},
        idle_minutes=3,
    )
    assert settings.policy(kind="direct", channel="sms") == ResetPolicy(daily=False)
    assert settings.policy(kind="direct", channel="chat") == ResetPolicy(at_hour=7)
    assert settings.policy(kind="direct", channel="other").idle_minutes == 10


def test_o14_dm_is_an_old_name_of_direct_only() -> None:
    settings = ResetSettings(by_type={"dm": ResetRule(at_hour=6)})
    assert settings.policy(kind="direct").at_hour == 6
    assert settings.policy(kind="group").at_hour == 4
    both = ResetSettings(by_type={"dm": ResetRule(at_hour=6), "direct": ResetRule(at_hour=8)})
    assert both.policy(kind="direct").at_hour == 8
