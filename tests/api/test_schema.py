"""Schemathesis against the OpenAPI description: no request, however odd, is a bug of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = 4
LEFT_OUT = ("/events", "/mcp", "/chat/completions")
"""Streams, and what passes a chat on to somebody else."""


@pytest.mark.timeout(240)
async def test_no_request_is_answered_with_a_bug(open_service: Callable[..., Any]) -> None:
    async with open_service(worker=False, environ={"MEMAGENT_RATE_LIMIT": "0"}) as service:
        described = (await service.client().get("/openapi.json")).json()
        schema = schemathesis.openapi.from_dict(described)
        ada = service.as_user("ada", key="all")
        cases = []

        for result in schema.get_all_operations():
            operation = result.ok()
            if operation.path.endswith(LEFT_OUT):
                continue

            @settings(
                max_examples=EXAMPLES,
                database=None,
                deadline=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy())
            def collect(case: Any) -> None:
                cases.append(case)

            collect()
        assert len(cases) > 60
        for case in cases:
            kwargs = case.as_transport_kwargs(base_url="http://memagent")
            headers = {name: value for name, value in kwargs.pop("headers", {}).items() if value.isascii()}
            answer = await _sent(ada, kwargs, headers)
            assert answer.status_code < 500, (case.method, case.path, answer.text)
            if answer.status_code >= 400 and case.path.startswith("/v1/"):
                assert {"code", "message", "retryable"} <= answer.json()["error"].keys()


async def _sent(client: Any, kwargs: dict[str, Any], headers: dict[str, str]) -> Any:
    given = {
        name: value
        for name, value in kwargs.items()
        if name in {"method", "url", "params", "json", "content"}
    }
    if kwargs.get("data") is not None:
        given["content"] = kwargs["data"]
    safe = {
        name: value
        for name, value in headers.items()
        if name.lower() not in {"authorization", "x-memagent-user", "cookie"}
    }
    return await client.request(**given, headers=safe)
