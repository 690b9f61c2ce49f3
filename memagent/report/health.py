"""The doctor's probes as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red", "skipped": "dim"}


def probes(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    table = Table(box=None, pad_edge=False, show_header=False)
    for name in ("verdict", "name", "found"):
        table.add_column(name, overflow="fold")
    for row in rows:
        found = Text(row["found"])
        if row["advice"] and row["verdict"] != "ok":
            found.append(f"\n→ {row['advice']}", style="dim")
        table.add_row(
            Text(row["verdict"], style=STYLES[row["verdict"]]), Text(row["name"], style="bold"), found
        )
    return table
