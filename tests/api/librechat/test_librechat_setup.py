"""The proxy of docs/librechat-setup.md, word for word: every route of the panel reaches memagent, and only those."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import jwt
import pytest
import uvicorn

from memagent.api.librechat.requests import MAX_BODY_BYTES
from memagent.api.librechat.routes import router
from memagent.config.environment import MemoryPermission, load_environment
from tests.api.conftest import JWT_SECRET

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

GUIDE = (Path(__file__).parents[3] / "docs" / "librechat-setup.md").read_text(encoding="utf-8")
[SNIPPET] = re.findall(r"```nginx\n(.*?)```", GUIDE, re.DOTALL)
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
SERVER = """
daemon off; master_process off; pid FOLDER/pid; error_log FOLDER/error.log;
events {}
http {
    access_log off;
    client_body_temp_path FOLDER/body; proxy_temp_path FOLDER/proxy; fastcgi_temp_path FOLDER/f;
    uwsgi_temp_path FOLDER/u; scgi_temp_path FOLDER/s;
    server {
        listen 127.0.0.1:PORT;
        location / { return 418; }
        SNIPPET
    }
}
"""


def locations() -> dict[str, str]:
    return {
        where.strip(): body for where, body in re.findall(r"location ([^{]+)\{(.*?)\n\}", SNIPPET, re.DOTALL)
    }


def test_every_route_of_the_panel_stands_behind_the_proxied_path() -> None:
    paths = {route.path for route in router.routes if hasattr(route, "path")}
    assert paths
    assert all(path.startswith("/api/memories") for path in paths)
    assert {"/api/memories", "= /api/memories/preferences"} <= set(locations())


def test_a_path_goes_through_as_it_was_encoded() -> None:
    for where in ("/api/memories", "= /api/memories/preferences"):
        [address] = re.findall(r"proxy_pass (\S+);", locations()[where])
        assert address == f"http://127.0.0.1:{load_environment({}).port}"


def test_the_proxy_and_the_routes_agree_on_the_largest_body() -> None:
    assert re.findall(r"client_max_body_size (\d+)k;", SNIPPET) == [str(MAX_BODY_BYTES // 1024)] * 2


def test_the_settings_of_the_guide_are_settings() -> None:
    [permissions] = re.findall(r"^MEMAGENT_PERMISSIONS=(.*)$", GUIDE, re.MULTILINE)
    assert load_environment({"MEMAGENT_PERMISSIONS": permissions}).permissions == permissions
    assert set(permissions.split()) < set(MemoryPermission)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@asynccontextmanager
async def listening(app: Any) -> AsyncIterator[int]:
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, lifespan="off", log_level="error"))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110  uvicorn has no event for it
        await asyncio.sleep(0.01)
    try:
        yield port
    finally:
        server.should_exit = True
        await serving


@asynccontextmanager
async def proxied(folder: Path, snippet: str) -> AsyncIterator[int]:
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(
        SERVER.replace("SNIPPET", snippet).replace("PORT", str(port)).replace("FOLDER", str(folder))
    )
    process = await asyncio.create_subprocess_exec(
        str(NGINX), "-c", str(config), "-p", str(folder), "-e", str(folder / "error.log")
    )
    try:
        for _ in range(500):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.returncode is None, (folder / "error.log").read_text()
            await asyncio.sleep(0.01)
        yield port
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed here")
async def test_the_panel_works_through_nginx_with_the_snippet_as_it_stands(
    open_service: Any, tmp_path: Path
) -> None:
    told: list[tuple[str, bytes]] = []

    async def librechat(scope: Any, receive: Any, send: Any) -> None:
        told.append((scope["path"], (await receive())["body"]))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    environ = {"MEMAGENT_EMBEDDER": "none"}
    async with (
        open_service(extra="validKeys: [a/b, tea]", environ=environ, worker=False) as service,
        listening(service.app) as memagent,
        listening(librechat) as upstream,
        proxied(tmp_path, SNIPPET.replace(":8900", f":{memagent}").replace(":3080", f":{upstream}")) as port,
    ):
        claims = {"id": "juno", "exp": int(service.now[0].timestamp()) + 60}
        token = jwt.encode(claims, JWT_SECRET, algorithm="HS256")
        headers = {"authorization": f"Bearer {token}", "cookie": "refreshToken=secret; memagent_session=x"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers) as panel:
            for key in ("a/b", "tea"):
                made = await panel.post("/api/memories", json={"key": key, "value": f"about {key}"})
                assert made.status_code == 201, made.text
            assert (await panel.patch("/api/memories/a%2Fb", json={"value": "new"})).json()["updated"] is True
            identity = made.json()["memory"]["_id"]
            assert (await panel.delete(f"/api/memories/id/{identity}")).json() == {"deleted": True}
            switched = await panel.patch("/api/memories/preferences", json={"memories": False})
            assert switched.json() == {"updated": True, "preferences": {"memories": False}}
            assert len((await panel.get("/api/memories")).json()["memories"]) == 1
            assert (await panel.get("/api/messages")).status_code == 418, "everything else stays LibreChat's"
            assert (await panel.get("/librechat-preferences")).status_code == 404
            assert (
                await panel.get("/api/memories", headers={"authorization": "Bearer x"})
            ).status_code == 401
        assert told == [("/api/memories/preferences", b'{"memories":false}')]
