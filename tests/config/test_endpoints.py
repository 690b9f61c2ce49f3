"""From a provider's name to a model that can be called (spec/librechat.md §3.1, §3.3)."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memagent.config.agents import AgentSpec
from memagent.config.endpoints import (
    ModelTarget,
    Provider,
    find_provider,
    header_templates,
    redacted,
    resolve_target,
)
from memagent.config.placeholders import BodyIds, UserFields
from memagent.config.settings import CustomEndpoint, MemorySettings, Settings
from memagent.errors import MemagentError, ModelRefused, NoUserKey

if TYPE_CHECKING:
    from collections.abc import Mapping

USER = UserFields(id="u1", fields={"email": "juno@example.org"})
GATEWAY = CustomEndpoint(name="Gateway", api_key="${KEY}", base_url="https://gw.example/v1/")
ENVIRON = {"KEY": "sk-gateway", "OPENAI_API_KEY": "sk-openai", "ANTHROPIC_API_KEY": "sk-ant"}


def endpoint(name: str = "Gateway", **fields: Any) -> CustomEndpoint:
    return CustomEndpoint(**{"name": name, "api_key": "k", "base_url": "https://gw.example/v1", **fields})


def target(
    provider: str,
    *endpoints: CustomEndpoint,
    environ: Mapping[str, str] = ENVIRON,
    model: str = "gpt-4o-mini",
    parameters: Mapping[str, Any] | None = None,
    all_headers: Mapping[str, str] | None = None,
    built_in_headers: Mapping[str, Mapping[str, str]] | None = None,
    **given: Any,
) -> ModelTarget:
    settings = Settings(
        MemorySettings(), endpoints, all_headers=all_headers or {}, built_in_headers=built_in_headers or {}
    )
    agent = AgentSpec(provider, model, model_parameters=parameters or {})
    return resolve_target(
        settings, agent=agent, environ=environ, user=USER, body=BodyIds("c1", "m1"), **given
    )


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("openAI", "openAI"),
        ("azureOpenAI", "azureOpenAI"),
        ("anthropic", "anthropic"),
        ("Anthropic", "anthropic"),
        ("GOOGLE", "google"),
        ("VertexAI", "vertexai"),
        ("Bedrock", "bedrock"),
    ],
)
def test_a_built_in_provider_is_found_exactly_or_in_lower_case(name: str, found: str) -> None:
    assert find_provider(name, [endpoint(name.lower())]) == Provider(found)


@pytest.mark.parametrize(
    "name", ["openai", "OpenAI", "OPENAI", "azureopenai", "AzureOpenAI", "litellm", "LiteLLM ", "custom", ""]
)
def test_any_other_spelling_is_refused(name: str) -> None:
    with pytest.raises(ModelRefused, match=f"the provider `{name}` is not supported"):
        find_provider(name, [endpoint("LiteLLM")])


@pytest.mark.parametrize(
    ("name", "hint"),
    [("openai", "`openAI`"), ("litellm", "`LiteLLM`"), ("Ollama", "`ollama`"), ("zzzzzz", "`vertexai`")],
)
def test_a_refusal_says_which_provider_was_meant(name: str, hint: str) -> None:
    with pytest.raises(ModelRefused, match=hint):
        find_provider(name, [endpoint("LiteLLM"), endpoint("OLLAMA")])


def test_a_misspelt_builtin_may_be_an_endpoints_exact_name() -> None:
    mine = endpoint("openai")

    assert find_provider("openai", [mine]) == Provider("openAI", mine)


@pytest.mark.parametrize("name", ["ollama", "Ollama", "OLLAMA"])
def test_an_endpoint_named_ollama_is_reached_in_lower_case_only(name: str) -> None:
    mine = endpoint(name)

    assert find_provider("ollama", [mine]).endpoint is mine
    with pytest.raises(ModelRefused):
        find_provider("Ollama", [mine])


def test_the_first_of_two_endpoints_of_one_name_is_found() -> None:
    first, second = endpoint(base_url="https://a.example"), endpoint(base_url="https://b.example")

    assert find_provider("Gateway", [first, second]).endpoint is first


@pytest.mark.parametrize("known", ["xai", "deepseek", "moonshot", "openrouter"])
def test_a_known_custom_provider_takes_the_endpoint_of_its_name_in_any_case(known: str) -> None:
    exact, other = endpoint(known), endpoint(known.upper())

    assert find_provider(known, [other]) == Provider(known, other)
    assert find_provider(known.title(), [other]) == Provider(known, other)
    assert find_provider(known, [other, exact]).endpoint is exact
    assert find_provider(known.upper(), [exact, other]).endpoint is other


def test_a_known_custom_provider_needs_an_endpoint_and_only_one() -> None:
    with pytest.raises(ModelRefused, match=r"not supported: add an entry named `openrouter`"):
        find_provider("openrouter", [endpoint("OpenRouter-2")])
    with pytest.raises(ModelRefused, match="ambiguous: the endpoints `OpenRouter`, `OPENROUTER`"):
        find_provider("openrouter", [endpoint("OpenRouter"), endpoint("OPENROUTER")])


@given(name=st.text(max_size=12), names=st.lists(st.text(max_size=12), max_size=3))
def test_a_provider_is_found_or_refused(name: str, names: list[str]) -> None:
    endpoints = [endpoint(each) for each in names]
    found: Provider | None = None
    try:
        found = find_provider(name, endpoints)
    except ModelRefused:
        assert name not in {each.provider_name for each in endpoints}
    assert found is None or found.endpoint is None or found.endpoint in endpoints


def test_a_custom_endpoint_is_called_as_openai() -> None:
    found = target("Gateway", GATEWAY)

    assert (found.model, found.base_url, found.api_key) == (
        "openai/gpt-4o-mini",
        "https://gw.example/v1",
        "sk-gateway",
    )
    assert found.parameters == {"temperature": 0.4}
    assert found.extra == {"user": "u1"}
    assert not found.merge_system_into_user


@pytest.mark.parametrize("name", ["xai", "deepseek", "moonshot", "openrouter"])
def test_a_known_custom_provider_is_called_by_its_own_client(name: str) -> None:
    assert target(name, endpoint(name)).model == f"{name}/gpt-4o-mini"
    assert target(name, endpoint(name, direct_endpoint=True)).model == "openai/gpt-4o-mini"


def test_an_endpoint_with_provider_anthropic_speaks_messages() -> None:
    found = target("Gateway", endpoint(provider="anthropic"), parameters={"thinking": True})

    assert found.model == "anthropic/gpt-4o-mini"
    assert "temperature" not in found.parameters
    assert target("openrouter", endpoint("openrouter", provider="anthropic")).model.startswith("anthropic/")


def test_added_and_dropped_parameters_of_an_endpoint_hold() -> None:
    found = target(
        "Gateway", endpoint(add_params={"temperature": 1, "safe": True}, drop_params=("user", "stop"))
    )

    assert found.parameters == {"temperature": 1}
    assert found.extra == {"safe": True}
    assert found.drop == ("user", "stop")


@pytest.mark.parametrize(
    "url", ["https://gw.example/v1/chat/completions", "https://gw.example/v1/chat/completions/"]
)
def test_an_address_that_ends_as_clients_end_it_needs_no_special_care(url: str) -> None:
    for fields in ({"direct_endpoint": True}, {}):
        found = target("Gateway", endpoint(base_url=url, **fields))
        assert (found.base_url, found.direct) == ("https://gw.example/v1", False)


@pytest.mark.parametrize(
    "url", ["https://gw.example", "https://gw.example/v1/", "https://gw.example/v1/messages"]
)
def test_the_address_of_a_messages_endpoint_may_hold_its_version(url: str) -> None:
    assert target("Gateway", endpoint(provider="anthropic", base_url=url)).base_url == "https://gw.example"


def test_a_direct_endpoint_is_called_at_its_whole_address() -> None:
    url = "https://gw.example/answer?v=1"

    assert target("Gateway", endpoint(base_url=url, direct_endpoint=True)).direct
    assert target("Gateway", endpoint(base_url=url, direct_endpoint=True)).base_url == url
    assert not target("Gateway", endpoint(base_url=url)).direct


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"api_key": "${NOPE}"}, r"no `apiKey`: set the variable of `\$\{NOPE\}`"),
        ({"api_key": "${KEY}${KEY}"}, "no `apiKey`"),
        ({"api_key": ""}, "no `apiKey`: add it"),
        ({"api_key": "  "}, "no `apiKey`: add it"),
        ({"base_url": "${NOPE}"}, "no `baseURL`: set the variable"),
        ({"base_url": ""}, "no `baseURL`: add it"),
        ({"base_url": "gw.example/v1"}, "must begin with http"),
        ({"base_url": "file:///etc/passwd"}, "must begin with http"),
        ({"api_key": "${REDIS_PASSWORD}"}, "no `apiKey`"),
    ],
)
def test_an_endpoint_without_a_key_or_an_address_is_refused(fields: dict[str, str], fault: str) -> None:
    with pytest.raises(
        ModelRefused, match=f"`Gateway`.*{fault}|the base URL of the endpoint `Gateway` {fault}"
    ):
        target("Gateway", endpoint(**fields), environ={**ENVIRON, "REDIS_PASSWORD": "hunter2"})


def test_a_partly_unresolved_key_passes() -> None:
    assert target("Gateway", endpoint(api_key="Bearer ${NOPE}")).api_key == "Bearer ${NOPE}"


def test_the_users_own_key_comes_with_the_turn_or_the_call_is_refused() -> None:
    theirs = endpoint(api_key="user_provided")

    assert target("Gateway", theirs, user_key=" sk-mine ").api_key == "sk-mine"
    for missing in (None, "", " "):
        with pytest.raises(NoUserKey, match="`Gateway` takes the user's own API key") as refused:
            target("Gateway", theirs, user_key=missing)
        assert refused.value.code == "no_user_key"
    assert (
        target("Gateway", endpoint(api_key="${KEY}"), environ={"KEY": "user_provided"}, user_key="x").api_key
        == "x"
    )


def test_configured_headers_never_go_to_an_address_of_the_users() -> None:
    theirs = endpoint(api_key="user_provided", base_url="user_provided", headers={"X-Secret": "${KEY}"})
    found = target(
        "Gateway", theirs, all_headers={"X-All": "y"}, user_key="k", user_base_url="https://mine.example/v1"
    )

    assert found.headers == {}
    assert found.base_url == "https://mine.example/v1"
    with pytest.raises(NoUserKey, match="base URL"):
        target("Gateway", theirs, user_key="k")


def test_the_servers_key_never_goes_to_an_address_of_the_users() -> None:
    with pytest.raises(ModelRefused, match="would send the server's key"):
        target("Gateway", endpoint(base_url="user_provided"), user_base_url="https://mine.example/v1")


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:6379",
        "http://127.0.0.1/v1",
        "http://[::1]/v1",
        "http://169.254.169.254/latest",
        "http://10.0.0.8/v1",
        "http://redis:6379",
        "http://2130706433/",
        "http://127.1/",
        "http://0x7f.0.0.1/",
        "http://db.internal/",
        "http://LOCALHOST./",
        "http://[::ffff:127.0.0.1]/",
        "http:///v1",
        "not a url",
    ],
)
def test_an_address_of_the_users_must_be_public(url: str) -> None:
    theirs = endpoint(api_key="user_provided", base_url="user_provided")

    with pytest.raises(NoUserKey, match="must be a public address"):
        target("Gateway", theirs, user_key="k", user_base_url=url)


def test_headers_of_all_endpoints_lie_under_the_endpoints_own() -> None:
    mine = endpoint(
        headers={
            "x-team": "${TEAM}",
            "X-User": "{{LIBRECHAT_USER_EMAIL}}",
            "X-Turn": "{{LIBRECHAT_BODY_MESSAGEID}}",
        }
    )
    found = target(
        "Gateway", mine, all_headers={"X-Team": "everyone", "X-All": "1"}, environ={"TEAM": "blue"}
    )

    assert found.headers == {"X-All": "1", "x-team": "blue", "X-User": "juno@example.org", "X-Turn": "m1"}


def test_a_built_in_provider_gets_its_headers_too() -> None:
    found = target(
        "openAI",
        all_headers={"X-All": "1"},
        built_in_headers={"openAI": {"X-Own": "2"}, "google": {"X": "3"}},
    )

    assert found.headers == {"X-All": "1", "X-Own": "2"}


@pytest.mark.parametrize(
    ("provider", "environ", "expected"),
    [
        ("openAI", {"OPENAI_API_KEY": "k"}, ModelTarget("openai/m", None, "k")),
        (
            "openAI",
            {
                "OPENAI_API_KEY": "k",
                "OPENAI_REVERSE_PROXY": "https://p.example/v1/chat/completions",
                "OPENAI_ORGANIZATION": "o",
            },
            ModelTarget("openai/m", "https://p.example/v1", "k", {"OpenAI-Organization": "o"}),
        ),
        ("anthropic", {"ANTHROPIC_API_KEY": "k"}, ModelTarget("anthropic/m", None, "k")),
        (
            "anthropic",
            {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_REVERSE_PROXY": "https://p.example/"},
            ModelTarget("anthropic/m", "https://p.example", "k"),
        ),
        ("google", {"GOOGLE_KEY": "k"}, ModelTarget("gemini/m", None, "k")),
        (
            "google",
            {"GOOGLE_KEY": "k", "GOOGLE_AUTH_HEADER": "true"},
            ModelTarget("gemini/m", None, "k", {"Authorization": "Bearer k"}),
        ),
        (
            "google",
            {"GOOGLE_SERVICE_KEY_FILE": "/key.json"},
            ModelTarget("vertex_ai/m", None, None, credentials={"vertex_credentials": "/key.json"}),
        ),
        (
            "vertexai",
            {"GOOGLE_SERVICE_KEY_FILE": base64.b64encode(b'{"a": 1}').decode(), "GOOGLE_LOC": "eu"},
            ModelTarget(
                "vertex_ai/m",
                None,
                None,
                credentials={"vertex_credentials": '{"a": 1}', "vertex_location": "eu"},
            ),
        ),
        (
            "azureOpenAI",
            {
                "AZURE_API_KEY": "k",
                "AZURE_OPENAI_API_INSTANCE_NAME": "inst",
                "AZURE_OPENAI_API_VERSION": "v",
                "AZURE_OPENAI_API_DEPLOYMENT_NAME": "dep",
            },
            ModelTarget("azure/dep", "https://inst.openai.azure.com", "k", credentials={"api_version": "v"}),
        ),
        (
            "azureOpenAI",
            {
                "AZURE_API_KEY": "k",
                "AZURE_OPENAI_API_INSTANCE_NAME": "inst",
                "AZURE_OPENAI_API_VERSION": "v",
                "AZURE_OPENAI_BASEURL": "https://${INSTANCE_NAME}.example/${DEPLOYMENT_NAME}",
            },
            ModelTarget("azure/m", "https://inst.example/m", "k", credentials={"api_version": "v"}),
        ),
        (
            "bedrock",
            {
                "BEDROCK_AWS_ACCESS_KEY_ID": "i",
                "BEDROCK_AWS_SECRET_ACCESS_KEY": "s",
                "BEDROCK_AWS_SESSION_TOKEN": "t",
                "BEDROCK_AWS_DEFAULT_REGION": "eu-central-1",
            },
            ModelTarget(
                "bedrock/converse/m",
                credentials={
                    "aws_region_name": "eu-central-1",
                    "aws_access_key_id": "i",
                    "aws_secret_access_key": "s",
                    "aws_session_token": "t",
                },
            ),
        ),
        (
            "bedrock",
            {"BEDROCK_AWS_BEARER_TOKEN": "b", "BEDROCK_REVERSE_PROXY": "p.example"},
            ModelTarget(
                "bedrock/converse/m", "https://p.example", "b", credentials={"aws_region_name": "us-east-1"}
            ),
        ),
        (
            "bedrock",
            {"BEDROCK_AWS_PROFILE": "work"},
            ModelTarget(
                "bedrock/converse/m", credentials={"aws_region_name": "us-east-1", "aws_profile_name": "work"}
            ),
        ),
    ],
)
def test_a_built_in_provider_takes_its_account_from_librechats_variables(
    provider: str, environ: dict[str, str], expected: ModelTarget
) -> None:
    found = target(provider, environ=environ, model="m")

    for name in ("model", "base_url", "api_key", "headers", "credentials"):
        assert getattr(found, name) == getattr(expected, name), name
    assert found.merge_system_into_user is (provider == "bedrock")


def test_an_azure_deployment_may_be_the_models_name_without_dots() -> None:
    environ = {
        "AZURE_API_KEY": "k",
        "AZURE_OPENAI_API_INSTANCE_NAME": "i",
        "AZURE_OPENAI_API_VERSION": "v",
        "AZURE_OPENAI_API_DEPLOYMENT_NAME": "dep",
        "AZURE_USE_MODEL_AS_DEPLOYMENT_NAME": "true",
    }

    assert target("azureOpenAI", environ=environ, model="gpt-3.5-turbo").model == "azure/gpt-35-turbo"


@pytest.mark.parametrize(
    ("provider", "environ", "variable"),
    [
        ("openAI", {}, "OPENAI_API_KEY"),
        ("openAI", {"OPENAI_API_KEY": " "}, "OPENAI_API_KEY"),
        ("openAI", {"OPENAI_API_KEY": "k", "OPENAI_REVERSE_PROXY": "user_provided"}, "OPENAI_REVERSE_PROXY"),
        ("anthropic", {}, "ANTHROPIC_API_KEY"),
        ("google", {}, "GOOGLE_KEY"),
        ("vertexai", {"GOOGLE_KEY": "k"}, "GOOGLE_SERVICE_KEY_FILE"),
        ("azureOpenAI", {}, "AZURE_API_KEY"),
        ("azureOpenAI", {"AZURE_API_KEY": "k"}, "AZURE_OPENAI_API_VERSION"),
        (
            "azureOpenAI",
            {"AZURE_API_KEY": "k", "AZURE_OPENAI_API_VERSION": "v"},
            "AZURE_OPENAI_API_INSTANCE_NAME",
        ),
        ("bedrock", {"BEDROCK_AWS_ACCESS_KEY_ID": "i"}, "BEDROCK_AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_a_missing_account_is_refused_with_the_variable_to_set(
    provider: str, environ: dict[str, str], variable: str
) -> None:
    with pytest.raises(ModelRefused, match=f"`{variable}`"):
        target(provider, environ=environ)


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        ("openAI", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("google", "GOOGLE_KEY"),
        ("bedrock", "BEDROCK_AWS_BEARER_TOKEN"),
        ("bedrock", "BEDROCK_AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_a_built_in_provider_may_take_the_users_key(provider: str, name: str) -> None:
    environ = {name: "user_provided"}

    assert target(provider, environ=environ, user_key="mine").api_key == "mine"
    with pytest.raises(NoUserKey, match=name):
        target(provider, environ=environ)


def test_the_responses_api_has_its_own_route() -> None:
    assert (
        target("openAI", model="gpt-5", parameters={"useResponsesApi": True}).model
        == "openai/responses/gpt-5"
    )


def test_a_target_shows_no_secret() -> None:
    settings_headers = {"X-Key": "Bearer ${KEY}", "X-Fixed": "fixed-secret"}
    mine = endpoint(
        base_url="https://me:hunter2@gw.example/v1?token=hunter2",
        headers=settings_headers,
        add_params={"token": "hunter2"},
    )
    settings = Settings(MemorySettings(), (mine,))
    found = target("Gateway", mine)
    shown = redacted(found, header_templates(settings, Provider("openAI", mine)))

    assert shown["headers"] == {"X-Key": "***${KEY}", "X-Fixed": "***"}
    assert shown["base_url"] == "https://gw.example/v1?***"
    for text in (str(shown), str(redacted(found))):
        assert "hunter2" not in text
        assert "secret" not in text
        assert "sk-gateway" not in text
    assert "sk-gateway" not in repr(found)
    assert "fixed-secret" not in repr(mine)


@given(
    key=st.sampled_from(["", "k", "${KEY}", "${NOPE}", "user_provided", "x${KEY}"]),
    url=st.sampled_from(["", "https://gw.example", "${URL}", "user_provided", "ftp://x", "https://${NOPE}"]),
    theirs=st.sampled_from([None, "", "https://mine.example", "http://127.0.0.1"]),
)
def test_resolving_ends_in_a_target_or_a_fault_of_ours(key: str, url: str, theirs: str | None) -> None:
    environ = {"KEY": "sk", "URL": "https://e.example"}
    faults: list[MemagentError] = []
    try:
        found = target(
            "Gateway",
            endpoint(api_key=key, base_url=url),
            environ=environ,
            user_key=theirs,
            user_base_url=theirs,
        )
        assert found.api_key
        assert found.base_url
        assert found.base_url.startswith("http")
    except MemagentError as fault:
        faults.append(fault)
    assert all(isinstance(fault, (ModelRefused, NoUserKey)) for fault in faults)
