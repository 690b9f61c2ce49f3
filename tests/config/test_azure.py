"""Azure OpenAI by groups (spec/librechat.md §2.6)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memagent.config.agents import AgentSpec
from memagent.config.azure import read_deployments
from memagent.config.endpoints import ModelTarget, Provider, header_templates, resolve_target
from memagent.config.placeholders import BodyIds, UserFields
from memagent.config.settings import MemorySettings, Settings
from memagent.errors import ModelRefused

WEST = {
    "group": "west",
    "apiKey": "${WESTUS_API_KEY}",
    "instanceName": "west-instance",
    "version": "2024-02-15",
    "deploymentName": "fallback",
    "models": {"gpt-4o": {"deploymentName": "gpt-4o-west", "version": "2024-06-01"}, "gpt-4.1-mini": True},
    "additionalHeaders": {"X-Group": "{{LIBRECHAT_USER_ID}}"},
    "addParams": {"safe": True},
    "dropParams": ["user"],
}
SERVERLESS = {
    "group": "llama",
    "apiKey": "k",
    "baseURL": "https://llama.example/v1/",
    "serverless": True,
    "models": {"llama-3": True},
}
ENVIRON = {"WESTUS_API_KEY": "west-key"}


def target(model: str, *groups: dict[str, Any]) -> ModelTarget:
    settings = Settings(MemorySettings(), azure=read_deployments({"groups": list(groups)}))
    agent = AgentSpec("azureOpenAI", model)
    return resolve_target(settings, agent=agent, environ=ENVIRON, user=UserFields("u1"), body=BodyIds())


def test_a_model_is_answered_by_its_own_deployment() -> None:
    found = target("gpt-4o", WEST)

    assert (found.model, found.base_url, found.api_key) == (
        "azure/gpt-4o-west",
        "https://west-instance.openai.azure.com",
        "west-key",
    )
    assert found.credentials == {"api_version": "2024-06-01"}
    assert found.headers == {"X-Group": "u1"}
    assert (found.extra, found.drop) == ({"safe": True}, ("user",))


def test_what_a_model_leaves_out_is_its_groups() -> None:
    found = target("gpt-4.1-mini", WEST)

    assert (found.model, found.credentials) == ("azure/fallback", {"api_version": "2024-02-15"})


def test_the_later_group_answers_for_a_model_of_two() -> None:
    assert (
        target("gpt-4o", WEST, {**WEST, "instanceName": "east"}).base_url == "https://east.openai.azure.com"
    )


def test_a_base_url_may_name_instance_and_deployment() -> None:
    group = {**WEST, "baseURL": "https://gw.example/${INSTANCE_NAME}/${DEPLOYMENT_NAME}"}

    assert target("gpt-4o", group).base_url == "https://gw.example/west-instance/gpt-4o-west"


def test_a_serverless_model_is_called_as_openai() -> None:
    found = target("llama-3", SERVERLESS)

    assert (found.model, found.base_url, found.direct) == (
        "openai/llama-3",
        "https://llama.example/v1",
        False,
    )
    assert found.headers == {"api-key": "k"}


def test_a_serverless_model_with_a_version_is_called_at_its_whole_address() -> None:
    found = target("llama-3", {**SERVERLESS, "version": "v1"})

    assert (found.base_url, found.direct) == (
        "https://llama.example/v1/chat/completions?api-version=v1",
        True,
    )


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (
            {"apiKey": "${NOPE}"},
            r"no `apiKey` for the model `gpt-4.1-mini`: set the variable of `\$\{NOPE\}`",
        ),
        ({"apiKey": ""}, "no `apiKey`"),
        ({"instanceName": 5}, "no `instanceName`"),
        ({"deploymentName": None}, "no `deploymentName`"),
        ({"version": ""}, "no `version`"),
    ],
)
def test_what_is_missing_is_named_with_its_group(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ModelRefused, match=f"the group `west` of `endpoints.azureOpenAI` has {field}"):
        target("gpt-4.1-mini", {**WEST, **change})


def test_a_model_of_no_group_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(ModelRefused, match=r"`gpt-4.1-mni` is in no group .*`gpt-4.1-mini`"):
        target("gpt-4.1-mni", WEST)


def test_headers_of_a_group_can_be_shown() -> None:
    settings = Settings(MemorySettings(), azure=read_deployments({"groups": [WEST]}))

    assert header_templates(settings, Provider("azureOpenAI"), "gpt-4o") == {
        "X-Group": "{{LIBRECHAT_USER_ID}}"
    }
    assert header_templates(settings, Provider("azureOpenAI")) == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["groups", "models", "apiKey", "dropParams", "a"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_block_is_too_broken_to_read(block: Any) -> None:
    assert all(isinstance(each.api_key, str) for each in read_deployments(block))
