"""Fixtures of the whole suite: no network but loopback."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOPBACK = ("127.", "::1", "localhost")


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not str(address[0]).startswith(LOOPBACK):
            raise OSError(f"the network is off in tests: {address[0]}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    yield
