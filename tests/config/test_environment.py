"""memagent's own settings (design §6, T44)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memagent.config.environment import (
    Environment,
    load_environment,
    settings_table,
    unknown_variables,
    with_settings_table,
)
from memagent.errors import ConfigUnusable

README = Path(__file__).parents[2] / "README.md"
NUMBERS = [
    ("MEMAGENT_USED_SET", 1, 100),
    ("MEMAGENT_DORMANT_AFTER_DAYS", 1, 3_650),
    ("MEMAGENT_MAX_MEMORIES", 1, 100_000),
    ("MEMAGENT_MAX_SHARED_MEMORIES", 1, 100_000),
    ("MEMAGENT_RECALL_BUDGET_MS", 1, 60_000),
    ("MEMAGENT_RECEIPT_DAYS", 1, 3_650),
    ("MEMAGENT_HISTORY_LENGTH", 0, 100_000),
    ("MEMAGENT_EMBEDDER_DIMENSIONS", 1, 65_536),
    ("MEMAGENT_MATCH_FLOOR", 0, 1),
]


def test_an_empty_environment_gives_the_defaults() -> None:
    options = load_environment({})

    assert options == Environment()
    assert (options.used_set, options.dormant_after_days, options.max_memories) == (3, 7, 100)
    assert (options.recall_budget_ms, options.receipt_days, options.key_prefix) == (150, 30, "ma")
    assert options.config == Path("librechat.yaml")
    assert options.redis_url is None
    assert options.match_floor is None


def test_the_readme_shows_every_setting_as_the_code_has_it() -> None:
    readme = README.read_text(encoding="utf-8")

    assert with_settings_table(readme) == readme
    assert all(row.help and row.variable in readme for row in settings_table())


def test_librechats_own_path_counts_where_memagents_is_not_set() -> None:
    assert load_environment({"CONFIG_PATH": "/a.yaml"}).config == Path("/a.yaml")
    assert load_environment({"CONFIG_PATH": "/a.yaml", "MEMAGENT_CONFIG": "/b.yaml"}).config == Path(
        "/b.yaml"
    )


def test_t44_decay_is_switched_off_for_the_installation() -> None:
    assert load_environment({}).memory_decay_enabled is True
    assert load_environment({"MEMORY_DECAY_ENABLED": "false"}).memory_decay_enabled is False
    assert load_environment({"MEMAGENT_MEMORY_DECAY_ENABLED": "false"}).memory_decay_enabled is True


def test_a_blank_value_counts_as_unset() -> None:
    assert load_environment({"MEMAGENT_USED_SET": " ", "MEMAGENT_REDIS_URL": ""}) == Environment()


def test_the_environment_wins_over_a_dotenv_file() -> None:
    dotenv = {"MEMAGENT_USED_SET": "5", "MEMAGENT_FSYNC": "always"}
    options = load_environment({"MEMAGENT_USED_SET": "4", "MEMAGENT_FSYNC": ""}, dotenv=dotenv)

    assert (options.used_set, options.fsync) == (4, "always")


@pytest.mark.parametrize(("name", "lowest", "highest"), NUMBERS)
def test_a_number_is_held_to_its_bounds(name: str, lowest: int, highest: int) -> None:
    for value in (lowest, highest):
        load_environment({name: str(value)})
    for value, rule in ((lowest - 1, f"at least {lowest}"), (highest + 1, f"at most {highest}")):
        with pytest.raises(ConfigUnusable, match=rf"`{name}` must be {rule}, found `{value}`: .*default"):
            load_environment({name: str(value)})


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("MEMAGENT_USED_SET", "three", "must be a whole number"),
        ("MEMAGENT_USED_SET", "1.5", "must be a whole number"),
        ("MEMAGENT_MATCH_FLOOR", "high", "must be a number"),
        ("MEMAGENT_MATCH_FLOOR", "nan", "must be"),
        ("MEMAGENT_MODEL_TIMEOUT_S", "0", "must be over 0"),
        ("MEMORY_DECAY_ENABLED", "maybe", "must be `true` or `false`"),
        ("MEMAGENT_FSYNC", "never", "must be 'everysec' or 'always'"),
        ("MEMAGENT_LOG_LEVEL", "INFO!", "must be 'debug'"),
        ("MEMAGENT_KEY_PREFIX", "a:b", "must be 1 to 32 letters"),
        ("MEMAGENT_KEY_PREFIX", "a\nb", "must be 1 to 32 letters"),
    ],
)
def test_a_bad_value_is_named_with_what_is_wrong(name: str, value: str, rule: str) -> None:
    with pytest.raises(ConfigUnusable) as refused:
        load_environment({name: value})

    assert str(refused.value).startswith(f"`{name}` {rule}")
    assert refused.value.__cause__ is None


def test_a_secret_in_a_bad_value_is_not_shown() -> None:
    with pytest.raises(ConfigUnusable) as refused:
        load_environment({"MEMAGENT_REDIS_URL": "http://me:hunter2@redis"})

    assert "must begin with redis://" in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in repr(load_environment({"MEMAGENT_REDIS_URL": "redis://me:hunter2@redis"}))


def test_every_bad_value_is_told_at_once() -> None:
    with pytest.raises(ConfigUnusable, match=r"`MEMAGENT_FSYNC` must .*; `MEMAGENT_USED_SET` must "):
        load_environment({"MEMAGENT_USED_SET": "x", "MEMAGENT_FSYNC": "x"})


def test_a_variable_that_nobody_reads_is_told_with_the_one_that_was_meant() -> None:
    environ = {
        "MEMAGENT_REDIS_ULR": "x",
        "MEMAGENT_USED_SET": "3",
        "PATH": "/bin",
        "MEMAGENT_QWXZ_QWXZ_QWXZ_QWXZ_QWXZ_QWXZ": "1",
    }

    assert unknown_variables(environ)[1] == ("MEMAGENT_REDIS_ULR", "MEMAGENT_REDIS_URL")
    assert [name for name, _ in unknown_variables(environ)] == [
        "MEMAGENT_QWXZ_QWXZ_QWXZ_QWXZ_QWXZ_QWXZ",
        "MEMAGENT_REDIS_ULR",
    ]


@given(st.dictionaries(st.sampled_from([row.variable for row in settings_table()]), st.text(max_size=8)))
def test_a_refusal_names_a_variable_that_was_given(environ: dict[str, str]) -> None:
    named = [""]
    try:
        load_environment(environ)
    except ConfigUnusable as refused:
        named = str(refused).split("`")
    assert named == [""] or named[1] in environ
