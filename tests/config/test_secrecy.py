"""Names are shown, secrets never: in values, comments, broken files and messages."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memagent.config.document import parse
from memagent.config.secrecy import HIDDEN, hide, is_secret, is_secret_name, masked, secrets

SECRET = "plain-words-nobody-may-see"


def shown(text: str) -> str:
    return masked(parse(text.encode(), "f.yaml")).replace(HIDDEN, "")


@pytest.mark.parametrize(
    "name",
    [
        "apiKey",
        "apikye",
        "api_keys",
        "api_key",
        "x-api-key",
        "client_secret",
        "GITHUB_TOKEN",
        "Authorization",
        "secretKey",
    ],
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["tokenLimit", "validKeys", "maxInputTokens", "authorization_url", "token_url", "key", "name"]
)
def test_other_names_are_not(name: str) -> None:
    assert not is_secret_name(name)


def test_everything_below_headers_is_secret() -> None:
    assert is_secret(("endpoints", "custom", 0, "headers", "x-team"))
    assert is_secret(("endpoints", "azureOpenAI", "groups", 0, "additionalHeaders", "x-team"))
    assert not is_secret(("endpoints", "custom", 0, "headers"))


@pytest.mark.parametrize(
    "text",
    [
        f"apiKey: {SECRET}\n",
        f"apiKey: '{SECRET}'  # the key\n",
        f'a: {{apiKey: "{SECRET}", b: 1}}\n',
        f"a: [apiKey: {SECRET}]\n",
        f"headers:\n  x-team: {SECRET}\n",
        f"headers: {{x-team: {SECRET}}}\n",
        f"headers:\n  x-team: >-\n    {SECRET}\n",
        f"apiKey: |\n  {SECRET}\n",
        f"apiKey:\n  {SECRET}\n",
        f"apiKey: >-\n  first\n  {SECRET}\nb: 1\n",
        f"# apiKey: {SECRET}\na: 1\n",
        f"a: &key {SECRET}\napiKey: *key\n",
        f"a: https://user:{SECRET}@example.org/\n",
        f'a: "${{KEY:-{SECRET}}}"\n',
        f"apiKey: {SECRET}\nbroken: [\n",
        f"headers:\n  x-team: {SECRET}\nbroken: [\n",
        f"a: --api-key={SECRET}\n",
        f"- {{name: b, headers: {{a: {SECRET}}}}}\n",
        f"headers:\n  a: b\n]  c: {SECRET}\n",
        f"apiKey: a: {SECRET}\n",
        f"env:\n  SERVER_TOKEN: {SECRET}\n",
        f"? apiKey\n: {SECRET}\n",
    ],
)
def test_a_secret_is_masked_wherever_it_stands(text: str) -> None:
    assert SECRET not in shown(text)


@pytest.mark.parametrize(
    "text", ["a: sk-proj-abcdefghijklmnopqrstuv\n", "a: ghp_abcdefghijklmnopqrstuvwxyz0123\n"]
)
def test_a_well_known_kind_of_key_is_masked_under_any_name(text: str) -> None:
    assert shown(text) == "a: …\n"


@pytest.mark.parametrize(
    "text",
    [
        'apiKey: "${NAME}"\n',
        "apiKey: ${NAME} # why\n",
        "a: {apiKey: ${NAME}, b: 1}\n",
        "headers: {x: ${NAME}, y: '{{Z}}'}\n",
        "apiKey: user_provided\n",
        'headers:\n  x: "{{LIBRECHAT_USER_ID}}"\n',
        "tokenLimit: 2000\n",
    ],
)
def test_variables_and_public_words_stay_readable(text: str) -> None:
    assert shown(text) == text


def test_the_text_around_a_variable_is_masked() -> None:
    assert shown('headers:\n  x: "Bearer ${KEY}"\n') == 'headers:\n  x: "…${KEY}"\n'


def test_masking_keeps_every_offset() -> None:
    text = f"apiKey: {SECRET}\r\nb: 1\r\n"
    hidden = masked(parse(text.encode(), "f.yaml"))
    assert len(hidden) == len(text)
    assert hidden.index("b: 1") == text.index("b: 1")


def test_messages_lose_secrets_too() -> None:
    known = secrets(parse(f"apiKey: {SECRET}\n".encode(), "f.yaml"))
    assert (
        hide(f"found {SECRET} and ${{A:-other-secret}} at https://u:p@h/", known)
        == "found … and ${A…} at https://…@h/"
    )


@settings(max_examples=80)
@given(
    st.text(
        st.characters(min_codepoint=33, max_codepoint=0x2FFF, exclude_categories=("C", "Z")),
        min_size=6,
        max_size=30,
    )
)
def test_no_quoted_secret_survives(secret: str) -> None:
    written = json.dumps(secret, ensure_ascii=False)
    if "${" in secret or "{{" in secret or secret in ("user_provided", "ollama"):
        return
    text = f"a: {{name: x, apiKey: {written}}}\nheaders:\n  x-team: {written}\n"
    assert secret not in shown(text)
