"""memagent's own settings, from environment variables: one row each, with type, default, bounds and help."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from memagent.config.spelling import meant
from memagent.errors import ConfigUnusable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

PREFIX = "MEMAGENT_"

BEGIN, END = "<!-- settings -->", "<!-- /settings -->"
"""Between these marks the README's table of settings stands."""

MAX_SHOWN_CHARS = 40


class MemoryPermission(StrEnum):
    """The bits of LibreChat's permission type MEMORIES (spec/librechat.md §1.4)."""

    USE = "USE"
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    READ = "READ"
    OPT_OUT = "OPT_OUT"


def _permissions(text: str) -> str:
    unknown = [word for word in text.split() if word not in list(MemoryPermission)]
    if unknown:
        raise ValueError(f"must be some of {' '.join(MemoryPermission)}, with blanks between them")
    return text


def _redis_url(url: str) -> str:
    if not url.startswith(("redis://", "rediss://", "unix://", "redis+cluster://", "rediss+cluster://")):
        raise ValueError("must begin with redis://, rediss://, unix:// or redis+cluster://")
    return url


def _web_url(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ValueError("must begin with http:// or https://")
    return url.rstrip("/")


def _header_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", name):
        raise ValueError("must be a header's name: letters, digits and hyphens")
    return name


class Environment(BaseSettings):
    """memagent's own settings. A field's variable is its name in capitals behind `MEMAGENT_`, or its alias."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003  pydantic-settings' own signature
        init_settings: PydanticBaseSettingsSource,
        *_: PydanticBaseSettingsSource,
        **__: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load_environment` hands in: the process's environment is never read behind its back."""
        return (init_settings,)

    config: Path = Field(
        Path("librechat.yaml"), description="the configuration to run; LibreChat's `CONFIG_PATH` counts too"
    )
    agents_file: Path | None = Field(
        None, description="saved agents that `memory.agent.id` may name: YAML, id to agent"
    )
    redis_url: Annotated[str, AfterValidator(_redis_url)] | None = Field(
        None,
        repr=False,
        description="Redis with its query engine, or any node of a cluster; without it memagent starts its own in the data folder",
    )
    data_dir: Path = Field(
        Path(".memagent"), description="where the embedded Redis and memory files are kept"
    )
    key_prefix: str = Field(
        "ma", pattern=r"^[A-Za-z0-9_-]{1,32}$", description="in front of every Redis key and index name"
    )
    fsync: Literal["everysec", "always"] = Field(
        "everysec",
        description="how often the embedded Redis flushes to disk; `always` loses nothing at a power cut",
    )
    embedder: str = Field(
        "local",
        min_length=1,
        description="`local`, `none` (no search, nothing ages), or a litellm embedding model",
    )
    embedder_dimensions: int | None = Field(
        None, ge=1, le=65_536, description="asked of a litellm embedding model"
    )
    match_floor: float | None = Field(
        None,
        ge=0,
        le=1,
        description="score from which a memory counts as matched; without it the embedder's own",
    )
    used_set: int = Field(3, ge=1, le=100, description="how many matched memories one turn may use")
    memory_decay_enabled: bool = Field(
        default=True,
        alias="MEMORY_DECAY_ENABLED",
        description="unused memories go dormant, and a full list forgets",
    )
    dormant_after_days: int = Field(
        7, ge=1, le=3_650, description="unused days after which a memory goes dormant"
    )
    max_memories: int = Field(100, ge=1, le=100_000, description="how many memories a user may have")
    max_shared_memories: int = Field(
        100, ge=1, le=100_000, description="how many memories a shared scope may have"
    )
    recall_budget_ms: int = Field(
        150, ge=1, le=60_000, description="after this an answer goes ahead without memories"
    )
    transcripts: bool = Field(
        default=False,
        description="what is literally said is kept and searched too; see docs/memory-files.md first",
    )
    notes_dir: Path | None = Field(
        None,
        description="a folder with MEMORY.md and memory/, searched for everybody who uses this memagent",
    )
    vectors: str | None = Field(
        None,
        repr=False,
        description="where turns and notes are searched: a Redis URL, or a folder for LanceDB; without it the same Redis",
    )
    auto_recall: Literal["off", "start", "turn", "both"] = Field(
        "both",
        description="when turns and notes come into the context by themselves, where they are kept",
    )
    model_timeout_s: float = Field(
        60.0, gt=0, le=600, description="after this a call of the memory agent's model fails"
    )
    receipt_days: int = Field(30, ge=1, le=3_650, description="how long the receipt of a turn is kept")
    history_length: int = Field(
        200, ge=0, le=100_000, description="how many changes of a scope can be shown and undone"
    )
    api_keys: str | None = Field(
        None,
        repr=False,
        description="who may call the service: rows that `memagent key` makes, separated by blanks",
    )
    jwt_secret: str | None = Field(
        None,
        alias="JWT_SECRET",
        repr=False,
        description="LibreChat's own, so that its users' tokens count here",
    )
    permissions: Annotated[str, AfterValidator(_permissions)] = Field(
        " ".join(MemoryPermission),
        description="what LibreChat's role may do with memories: the bits of its permission MEMORIES",
    )
    session_secret: str | None = Field(
        None,
        repr=False,
        min_length=32,
        description="signs login links and sessions, and keeps users' own keys in the queue; without it a new one at each start",
    )
    host: str = Field("127.0.0.1", min_length=1, description="where `memagent serve` listens")
    port: int = Field(8900, ge=0, le=65_535, description="where `memagent serve` listens; 0 takes a free one")
    public_url: Annotated[str, AfterValidator(_web_url)] | None = Field(
        None, description="the service's address as browsers see it, for login links"
    )
    public_validate: bool = Field(
        default=False,
        description="everybody who reaches the service may have a librechat.yaml checked, not admins' keys alone",
    )
    upstream: str | None = Field(
        None, min_length=1, description="the endpoint of librechat.yaml that the gateway passes chats on to"
    )
    gateway_user_header: Annotated[str, AfterValidator(_header_name)] = Field(
        "X-User-Identifier", description="in which header a chat's user comes to the gateway"
    )
    gateway_conversation_header: Annotated[str, AfterValidator(_header_name)] = Field(
        "X-Conversation-Identifier", description="in which header a chat's id comes to the gateway"
    )
    gateway_message_header: Annotated[str, AfterValidator(_header_name)] = Field(
        "X-Message-Identifier",
        description="in which header the id of the user's message comes to the gateway",
    )
    gateway_timeout_s: float = Field(
        600.0,
        gt=0,
        le=3_600,
        description="after this a silent endpoint behind the gateway is given up, before its answer and within it",
    )
    gateway_body_limit_kb: int = Field(
        65_536, ge=1, le=1_048_576, description="the largest chat that the gateway reads: images come with it"
    )
    queue_per_user: int = Field(100, ge=1, le=100_000, description="how many turns of one user may wait")
    queue_total: int = Field(10_000, ge=1, le=10_000_000, description="how many turns may wait in total")
    worker_turns: int = Field(
        16, ge=1, le=1_000, description="how many turns one worker learns from at a time"
    )
    turn_attempts: int = Field(
        6, ge=1, le=100, description="how often a turn is tried before it becomes a dead letter"
    )
    turn_backoff_s: float = Field(
        2.0,
        ge=0,
        le=3_600,
        description="pause before a turn is tried again; doubles each time, up to 5 minutes",
    )
    turn_lease_s: float = Field(
        15.0, ge=0.2, le=600, description="after this a turn of a worker that died is taken up by another"
    )
    dead_letter_days: int = Field(7, ge=1, le=365, description="how long a turn that failed can be replayed")
    drain_s: float = Field(
        20.0, ge=0, le=600, description="how long a stop waits for the turns that are being learned from"
    )
    body_limit_kb: int = Field(4_096, ge=1, le=1_048_576, description="the largest request body that is read")
    request_timeout_s: float = Field(
        120.0, gt=0, le=3_600, description="after this a request that has not begun to answer fails"
    )
    rate_limit: int = Field(
        1_200,
        ge=0,
        le=1_000_000,
        description="requests per minute of one user or key, per process; 0 is without limit",
    )
    otel_endpoint: str | None = Field(
        None,
        alias="OTEL_EXPORTER_OTLP_ENDPOINT",
        description="where traces go; needs the OpenTelemetry SDK and its OTLP exporter",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="what is logged, and all above it"
    )


ALSO: Mapping[str, str] = {"MEMAGENT_CONFIG": "CONFIG_PATH"}
"""A variable of LibreChat that is read where memagent's own is not set."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting as its documentation shows it."""

    variable: str
    default: str
    help: str


class Given(PydanticBaseSettingsSource):
    """The environment that a caller hands in, as a source of settings; a blank value counts as unset."""

    def __init__(self, settings: type[BaseSettings], environ: Mapping[str, str]) -> None:
        super().__init__(settings)
        self._environ = environ

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[str, str, bool]:
        """The text of a setting, the name it is given under, and that it is never JSON."""
        return _value(self._environ, variable(field_name, field)), field.alias or field_name, False

    def __call__(self) -> dict[str, Any]:
        found = (self.get_field_value(field, name) for name, field in self.settings_cls.model_fields.items())
        return {name: text for text, name, _ in found if text}


def load_environment(environ: Mapping[str, str], *, dotenv: Mapping[str, str] | None = None) -> Environment:
    """Read the settings in `environ`, and below it in what a .env file says; a blank value counts as unset.

    Raises `ConfigUnusable` naming every variable with a bad value; the value of a secret is not shown.
    """
    known = {**(dotenv or {}), **{name: value for name, value in environ.items() if value.strip()}}
    try:
        return Environment(**Given(Environment, known)())
    except ValidationError as invalid:
        faults = [_fault(error) for error in invalid.errors(include_url=False, include_context=True)]
        raise ConfigUnusable("; ".join(faults)) from None


def variable(name: str, field: FieldInfo) -> str:
    """The environment variable of a field."""
    return field.alias or f"{PREFIX}{name.upper()}"


def unknown_variables(environ: Iterable[str]) -> tuple[tuple[str, str | None], ...]:
    """Variables with memagent's prefix that nobody reads, each with the one that was probably meant."""
    known = [row.variable for row in settings_table()]
    strange = sorted(name for name in environ if name.startswith(PREFIX) and name not in known)
    return tuple((name, near.name if (near := meant(name, known)) else None) for name in strange)


def settings_table() -> tuple[SettingRow, ...]:
    """Every setting, in the order of the class."""
    return tuple(
        SettingRow(variable(name, field), _shown(field.default), field.description or "")
        for name, field in Environment.model_fields.items()
    )


def with_settings_table(readme: str) -> str:
    """The text of the README with its table of settings as the code has it."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = [f"| `{row.variable}` | {row.default} | {row.help} |" for row in settings_table()]
    table = "\n".join(["| variable | default | what it does |", "| --- | --- | --- |", *rows])
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def _value(known: Mapping[str, str], name: str) -> str:
    return known.get(name, "").strip() or known.get(ALSO.get(name, ""), "").strip()


def _shown(default: Any) -> str:
    if default is None:
        return ""
    return f"`{str(default).lower()}`" if isinstance(default, bool) else f"`{default}`"


def _fault(error: ErrorDetails) -> str:
    """One bad value in words: the variable, what is wrong with it, what to do."""
    location = str(error["loc"][0])
    name, field = next((n, f) for n, f in Environment.model_fields.items() if location in (n, f.alias))
    context = error.get("ctx", {})
    rule = _RULES.get(error["type"], "is not allowed here").format_map(
        {**context, "error": context.get("error", "")}
    )
    found = " ".join(str(error["input"]).split())
    shown = f", found `{found[:MAX_SHOWN_CHARS]}`" if field.repr else ""
    default = _shown(field.default) or "nothing"
    return f"`{variable(name, field)}` {rule}{shown}: mend it, or unset it for the default, {default} ({field.description})"


_RULES: Mapping[str, str] = {
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a smaller number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_parsing": "must be `true` or `false`",
    "literal_error": "must be {expected}",
    "greater_than": "must be over {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "string_pattern_mismatch": "must be 1 to 32 letters, digits, underscores or hyphens",
    "string_too_short": "must have at least {min_length} characters",
    "value_error": "{error}",
}
