"""The fence around what auto recall puts before a turn, by which it is known again and never learned from."""

from __future__ import annotations

TAG = "relevant-memories"
OPENING, CLOSING = f"<{TAG}>", f"</{TAG}>"
