"""The Lua scripts: what each is made of, read from the package."""

from __future__ import annotations

from functools import cache
from importlib import resources

PARTS = {
    "apply": ("scope", "lanes", "change", "apply"),
    "undo": ("scope", "lanes", "change", "undo"),
    "recall": ("scope", "lanes", "see", "score", "judge", "recall"),
    "recall_see": ("scope", "lanes", "see", "recall_see"),
    "recall_words": ("scope", "recall_words"),
    "recall_judge": ("scope", "lanes", "see", "score", "judge", "recall_judge"),
    "read": ("scope", "lanes", "read"),
    "standing": ("scope", "lanes", "standing"),
    "attach": ("scope", "lanes", "attach"),
    "receipt": ("scope", "receipt"),
    "erase": ("scope", "lanes", "erase"),
}

QUEUE_PARTS = {
    name: ("queue", f"queue_{name}")
    for name in ("accept", "take", "renew", "settle", "replay", "look", "mark", "erase", "announce")
}

NUMBERS = "numbers"


@cache
def numbers_script() -> str:
    """Text of the script that numbers what is said in a conversation."""
    return _text((NUMBERS,))


@cache
def script(name: str) -> str:
    """Text of one script on a scope, with what it stands on in front."""
    return _text(PARTS[name])


@cache
def queue_script(name: str) -> str:
    """Text of one script on a user's turns."""
    return _text(QUEUE_PARTS[name])


def _text(parts: tuple[str, ...]) -> str:
    folder = resources.files("memagent.store") / "lua"
    return "\n".join((folder / f"{part}.lua").read_text(encoding="utf-8") for part in parts)
