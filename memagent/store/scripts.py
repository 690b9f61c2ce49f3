"""The Lua scripts: what each is made of, read from the package."""

from __future__ import annotations

from functools import cache
from importlib import resources

PARTS = {
    "apply": ("scope", "lanes", "change", "apply"),
    "undo": ("scope", "lanes", "change", "undo"),
    "recall": ("scope", "lanes", "score", "recall"),
    "read": ("scope", "lanes", "read"),
    "attach": ("scope", "lanes", "attach"),
    "receipt": ("scope", "receipt"),
    "erase": ("scope", "lanes", "erase"),
}


@cache
def script(name: str) -> str:
    """Text of one script, with what it stands on in front."""
    folder = resources.files("memagent.store") / "lua"
    return "\n".join((folder / f"{part}.lua").read_text(encoding="utf-8") for part in PARTS[name])
