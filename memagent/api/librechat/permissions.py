"""What a role may do with memories: LibreChat's permission bits (spec/librechat.md §1.4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from fastapi import Request

from memagent.api.auth import May, Proven
from memagent.config.environment import MemoryPermission
from memagent.config.settings import MemoryOff
from memagent.errors import Forbidden, Unauthenticated

if TYPE_CHECKING:
    from memagent.config.environment import Environment
    from memagent.config.settings import MemorySettings

INSUFFICIENT = "Forbidden: Insufficient permissions"


def granted(options: Environment, memory: MemorySettings) -> frozenset[MemoryPermission]:
    """No bit where there is no memory, and no switch to opt out with where `personalize` is false."""
    if memory.off in {MemoryOff.NO_BLOCK, MemoryOff.DISABLED}:
        return frozenset()
    without = {MemoryPermission.OPT_OUT} if memory.off is MemoryOff.NOT_PERSONALIZED else set()
    return frozenset(map(MemoryPermission, options.permissions.split())) - without


def user_who_may(bit: MemoryPermission) -> Callable[[Request, Proven], Awaitable[str]]:
    """A dependency: the proven user, if the role has USE and `bit`; raises `Unauthenticated` or `Forbidden`."""
    asked = May.READ if bit is MemoryPermission.READ else May.WRITE

    async def user(request: Request, caller: Proven) -> str:
        ports = request.app.state.memory.ports
        if caller.user is None:
            raise Unauthenticated("no user is named")
        bits = granted(ports.options, ports.settings.memory)
        if asked not in caller.may or not {MemoryPermission.USE, bit} <= bits:
            raise Forbidden(INSUFFICIENT)
        return caller.user

    return user
