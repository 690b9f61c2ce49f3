"""Whether what a turn stands on is well, as a monitor asks it every few seconds: cheap, and no model is paid for it."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from memagent.service.doctor import Verdict, embedder_probe

if TYPE_CHECKING:
    from memagent.service.ports import Ports

EMBEDDER_EVERY_S = 60.0
"""An embedder may be a paid service: it is asked this often, however often a monitor asks."""


class Wellness:
    """Looks at store, index and embedder of one memory."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._embedder = Verdict.SKIPPED
        self._embedder_at = float("-inf")

    async def look(self) -> list[tuple[str, Verdict]]:
        """Every part with its verdict."""
        found = [
            (probe.name, Verdict(probe.verdict))
            for probe in await self._ports.store.health(now=self._ports.clock())
        ]
        if monotonic() - self._embedder_at > EMBEDDER_EVERY_S:
            self._embedder_at = monotonic()
            self._embedder = (await embedder_probe(self._ports)).verdict
        return [*found, ("embedder", self._embedder)]
