"""Logs as one JSON object a line: what happened, where, and ids; never a text of a user, never a traceback's words."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
"""What every record has; the rest is what the caller said beside it."""

QUIET = ("docket", "uvicorn", "httpx", "httpcore", "litellm", "LiteLLM", "mcp", "asyncio")
"""Loggers of others, from warnings on: what they say in passing may hold names."""


class JsonLine(logging.Formatter):
    """One record as JSON. Of an exception only its kind and place: its words may quote what somebody said."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {"at": at, "level": record.levelname.lower(), "logger": record.name}
        ours = record.name.partition(".")[0] == "memagent"
        # Other people's messages are kept as they wrote them in their code, without what they put in.
        line["event"] = record.getMessage() if ours else str(record.msg)
        if record.exc_info and record.exc_info[0] is not None:
            line["kind"] = record.exc_info[0].__name__
        if ours:
            line |= {name: value for name, value in vars(record).items() if name not in PLAIN}
        return json.dumps(line, ensure_ascii=False, default=str)


def install(level: str) -> None:
    """Log to stderr as JSON, everything from `level` on, of others from warnings on."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLine())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(max(logging.WARNING, logging.getLevelName(level.upper())))
