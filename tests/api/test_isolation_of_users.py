"""No user reaches another's data by any id: every route, every method, with credentials of a user's own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import jwt

from memagent.llm.script import calling
from tests.api.conftest import JWT_SECRET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECRET = "Bob's xylophone"
METHODS = ("get", "post", "put", "patch", "delete")
OWN_SECRETS = ("/openapi.json", "/docs", "/redoc")


def token(user: str, now: Any) -> str:
    """A token as LibreChat signs it."""
    return jwt.encode({"id": user, "exp": int(now.timestamp()) + 900}, JWT_SECRET, algorithm="HS256")


def routes(described: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for path, methods in described["paths"].items():
        for method in methods:
            if method in METHODS:
                yield method, path


async def test_no_route_shows_or_changes_anything_of_another_user(open_service: Callable[..., Any]) -> None:
    """Ada, with her own token, says Bob's ids wherever an id can be said."""
    async with open_service(calling("set_memory", key="music", value=SECRET)) as service:
        bob = service.as_user("bob")
        ticket = (await bob.post("/v1/turns", json=service.turn("I play."), params={"wait": "true"})).json()
        assert ticket["receipt"]["set"] == ["music"]
        before = (await bob.get("/v1/memories")).json(), (await bob.get("/v1/memories:history")).json()
        described = (await service.client().get("/openapi.json")).json()
        ada = service.client(Authorization=f"Bearer {token('ada', service.now[0])}")
        bodies: list[Any] = [
            {"user": "bob", "id": ticket["id"]},
            {"user": "bob"},
            {"user": "bob", "text": "xylophone", "shared": ["bob"]},
            {**service.turn("What do I play?"), "user": "bob"},
            {"key": "music", "value": "gone", "rename_from": "music"},
            {"memories": False, "user": "bob"},
        ]
        tried = 0
        for method, path in routes(described):
            for name in ("bob", ticket["id"], "music", "{u:bob}u::music", "../bob"):
                url = re.sub(r"\{[^}]+\}", name, path)
                for query in (
                    {},
                    {"user": "bob", "agent": "", "user_id": "bob"},
                    {"shared": "bob"},
                    {"agent": "bob"},
                ):
                    for body in bodies if method in {"post", "put", "patch"} else [None]:
                        answer = await ada.request(method, url, params=query, json=body)
                        tried += 1
                        assert SECRET not in answer.text, (method, url, query)
                        assert ticket["id"] not in answer.text or answer.status_code >= 400, (
                            method,
                            url,
                            query,
                        )
        after = (await bob.get("/v1/memories")).json(), (await bob.get("/v1/memories:history")).json()

        assert tried > 500
        assert after == before
        assert (await bob.get(f"/v1/turns/{ticket['id']}")).json() == ticket
        assert (await bob.get("/v1/preferences")).json() == {"memories": True}


async def test_every_route_but_those_of_a_monitor_and_a_login_wants_a_credential(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(worker=False) as service:
        described = (await service.client().get("/openapi.json")).json()
        nobody = service.client()
        open_to_all = set()
        for method, path in routes(described):
            url = re.sub(r"\{[^}]+\}", "x", path)
            answer = await nobody.request(
                method, url, json={} if method in {"post", "put", "patch"} else None
            )
            if answer.status_code not in {401, 422, 400}:
                open_to_all.add(path)

        assert {path for path in open_to_all if path.startswith(("/v1/", "/api/"))} == set()


async def test_a_token_of_another_secret_or_time_proves_nobody(open_service: Callable[..., Any]) -> None:
    async with open_service(worker=False) as service:
        good = token("ada", service.now[0])
        forged = jwt.encode(
            {"id": "ada", "exp": 9_999_999_999},
            "another secret, of the same length as ours",
            algorithm="HS256",
        )
        unsigned = jwt.encode({"id": "ada", "exp": 9_999_999_999}, "", algorithm="none")
        for each, status in ((good, 200), (forged, 401), (unsigned, 401), ("nonsense", 401)):
            assert (
                await service.client(Authorization=f"Bearer {each}").get("/v1/preferences")
            ).status_code == status
        service.later(minutes=15)
        assert (
            await service.client(Authorization=f"Bearer {good}").get("/v1/preferences")
        ).status_code == 401


async def test_a_key_that_was_rotated_out_opens_nothing(open_service: Callable[..., Any]) -> None:
    async with open_service(worker=False) as service:
        old = service.client(Authorization="Bearer mk_of-last-year", **{"X-Memagent-User": "ada"})

        assert (await old.get("/v1/memories")).status_code == 401
