"""Whose sessions: an agent's folder that everybody who talks to it shares, and a folder of its own for each user of a service."""

from __future__ import annotations

from hashlib import sha256
from shutil import rmtree
from typing import TYPE_CHECKING

from memagent.errors import StoreUnavailable
from memagent.sessions.keys import MAIN, agent_id

if TYPE_CHECKING:
    from pathlib import Path

OWNED = ".users"
"""No agent is called so: an agent's id begins with a letter or a digit."""


def workspace(data: Path, *, owner: str | None = None, agent: str = MAIN) -> Path:
    """The folder of an agent's sessions, or of those of one `owner` with that agent.

    An owner's id is any text, and its folder a digest of it: no two owners share one, however they are spelled.
    """
    above = data / "sessions" if owner is None else _home(data, owner)
    return above / agent_id(agent)


def erase(data: Path, owner: str) -> int:
    """Erase all sessions of an owner, archives and rows too; how many transcripts there were. Raises `StoreUnavailable`."""
    home = _home(data, owner)
    count = sum(".jsonl" in path.name for path in home.rglob("*"))
    try:
        rmtree(home)
    except FileNotFoundError:
        return 0
    except OSError as fault:
        raise StoreUnavailable(f"the sessions of a user cannot be erased: {fault.strerror}") from None
    return count


def _home(data: Path, owner: str) -> Path:
    return data / "sessions" / OWNED / sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()
