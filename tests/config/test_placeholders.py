"""Placeholders of headers and prompts (spec/librechat.md §3.2, §3.4, §3.5)."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memagent.config.placeholders import (
    UNRESOLVABLE,
    USER_FIELDS,
    BodyIds,
    OpenId,
    UserFields,
    expand_env,
    expand_special,
    is_unresolved,
    mask,
    merge_headers,
    render_header,
    render_headers,
)
from memagent.errors import ModelRefused

ENVIRON = {
    "A": "aa",
    "B": "bb",
    "EMPTY": "",
    "NESTED": "${A}",
    "USERNAME": "{{LIBRECHAT_USER_ID}}",
    "A}-${B": "odd",
}
NOBODY = UserFields()
NOWHERE = BodyIds()


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("", ""),
        ("plain", "plain"),
        ("  plain \n", "plain"),
        ("\ufeff${A}\u00a0", "aa"),
        ("\x1c${A}", "\x1caa"),
        ("${A}", "aa"),
        ("${A}\n", "aa"),
        ("${A}${B}", "${A}${B}"),
        ("${A}/${B}", "${A}/${B}"),
        ("${A}-${B}", "odd"),
        ("x${A}y${B}", "xaaybb"),
        ("Bearer ${A}", "Bearer aa"),
        ("${A} ", "aa"),
        ("${A}\n${B}", "aa\nbb"),
        ("x${MISSING}y${A}", "x${MISSING}yaa"),
        ("${MISSING}", "${MISSING}"),
        (" ${MISSING} ", "${MISSING}"),
        ("${EMPTY}", "${EMPTY}"),
        ("x${EMPTY}", "x${EMPTY}"),
        ("$A", "$A"),
        ("${}", "${}"),
        ("${ A }", "${ A }"),
        ("${A", "${A"),
        ("${NESTED}", "${A}"),
        ("x${NESTED}", "x${A}"),
        ("日本${A}", "日本aa"),
    ],
)
def test_environment_placeholders_are_read_as_librechat_reads_them(text: str, expanded: str) -> None:
    assert expand_env(text, ENVIRON) == expanded


@pytest.mark.parametrize("name", sorted(UNRESOLVABLE))
def test_the_eight_secrets_of_the_server_never_resolve(name: str) -> None:
    environ = {name: "hunter2"}

    assert expand_env(f"${{{name}}}", environ) == f"${{{name}}}"
    assert expand_env(f"x-${{{name}}}", environ) == f"x-${{{name}}}"
    assert len(UNRESOLVABLE) == 8


@pytest.mark.parametrize("text", ["${A}", "${A}${B}"])
def test_a_whole_placeholder_counts_as_unresolved(text: str) -> None:
    assert is_unresolved(text)


@pytest.mark.parametrize("text", ["x${A}", "${A}x", "", "${}", "$A"])
def test_a_value_with_text_around_its_placeholder_passes(text: str) -> None:
    assert not is_unresolved(text)


def rendered(template: str, user: UserFields = NOBODY, body: BodyIds = NOWHERE) -> str | None:
    return render_header(template, environ=ENVIRON, user=user, body=body)


@pytest.mark.parametrize("field", [name for name in USER_FIELDS if name != "id"])
def test_every_field_of_a_user_has_its_placeholder(field: str) -> None:
    user = UserFields(id="u1", fields={field: "value"})

    assert rendered(f"<{{{{LIBRECHAT_USER_{field.upper()}}}}}>", user) == "<value>"


@pytest.mark.parametrize(
    ("template", "user", "expected"),
    [
        ("{{LIBRECHAT_USER_ID}}", UserFields(id="u1"), "u1"),
        ("{{LIBRECHAT_USER_ID}}", NOBODY, ""),
        ("a{{LIBRECHAT_USER_EMAIL}}b", UserFields(id="u1"), "ab"),
        ("a{{LIBRECHAT_USER_EMAIL}}b", UserFields(id="u1", fields={"email": None}), "ab"),
        ("{{LIBRECHAT_USER_EMAILVERIFIED}}", UserFields(fields={"emailVerified": True}), "true"),
        ("{{LIBRECHAT_USER_TERMSACCEPTED}}", UserFields(fields={"termsAccepted": False}), "false"),
        ("{{LIBRECHAT_USER_TENANT_ID}}", UserFields(fields={"tenantId": "t"}), "t"),
        ("{{LIBRECHAT_USER_NOPE}}", UserFields(id="u1"), "{{LIBRECHAT_USER_NOPE}}"),
        ("{{LIBRECHAT_USER_PASSWORD}}", UserFields(fields={"password": "x"}), "{{LIBRECHAT_USER_PASSWORD}}"),
        ("{{FOO}}", UserFields(id="u1"), "{{FOO}}"),
        ("{{LIBRECHAT_GRAPH_ACCESS_TOKEN}}", UserFields(id="u1"), "{{LIBRECHAT_GRAPH_ACCESS_TOKEN}}"),
        ("{{librechat_user_id}}", UserFields(id="u1"), "{{librechat_user_id}}"),
        ("{{FOO}}-{{BAR}}", UserFields(variables={"FOO": "1"}), "1-{{BAR}}"),
        ("{{LIBRECHAT_USER_ID}}", UserFields(id="u1", variables={"LIBRECHAT_USER_ID": "mine"}), "mine"),
        ("{{a.b*(c)}}", UserFields(variables={"a.b*(c)": "1"}), "1"),
        ("{{axb}}", UserFields(variables={"a.b": "1"}), "{{axb}}"),
        ("{{AB}}", UserFields(variables={"A": "1", "AB": "2"}), "2"),
        ("${USERNAME}", UserFields(id="u1"), "u1"),
    ],
)
def test_a_header_is_filled_with_what_is_known_of_the_user(
    template: str, user: UserFields, expected: str
) -> None:
    assert rendered(template, user) == expected


def test_a_header_is_filled_with_the_ids_of_the_turn_and_blank_where_there_is_none() -> None:
    body = BodyIds(conversation_id="c1", message_id="m1")
    template = (
        "{{LIBRECHAT_BODY_CONVERSATIONID}}/{{LIBRECHAT_BODY_MESSAGEID}}/{{LIBRECHAT_BODY_PARENTMESSAGEID}}"
    )

    assert rendered(template, body=body) == "c1/m1/"


@pytest.mark.parametrize("field", ["name", "username", "email"])
@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("Zoë", "Zoë"),
        ("ÿ", "ÿ"),
        ("Ā", "b64:" + base64.b64encode("Ā".encode()).decode()),
        ("日本", "b64:" + base64.b64encode("日本".encode()).decode()),
        ("", ""),
    ],
)
def test_names_and_addresses_beyond_latin_1_are_sent_as_base64(field: str, value: str, sent: str) -> None:
    user = UserFields(fields={field: value})

    assert rendered(f"x{{{{LIBRECHAT_USER_{field.upper()}}}}}y", user) == f"x{sent}y"


def test_other_text_beyond_latin_1_is_refused_with_the_name_of_the_header() -> None:
    user = UserFields(fields={"role": "日本"}, variables={"V": "日本"})

    for template in ("日本", "{{LIBRECHAT_USER_ROLE}}", "{{V}}"):
        with pytest.raises(ModelRefused, match="header `X-Team`") as refused:
            render_headers({"X-Team": template}, environ={}, user=user, body=NOWHERE)
        assert "日本" not in str(refused.value)


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "a:b", "ä"])
def test_what_is_not_a_header_name_is_refused(name: str) -> None:
    with pytest.raises(ModelRefused, match="not a header name"):
        render_headers({name: "x"}, environ={}, user=NOBODY, body=NOWHERE)


@pytest.mark.parametrize("token", ["ACCESS_TOKEN", "TOKEN", "ID_TOKEN"])
def test_a_header_without_its_openid_token_is_left_out(token: str) -> None:
    template = f"Bearer {{{{LIBRECHAT_OPENID_{token}}}}}"
    session = UserFields(id="u1", openid=OpenId(access_token="t1", id_token="t1"))

    assert rendered(template, UserFields(id="u1")) is None
    assert rendered(template, session) == "Bearer t1"
    assert render_headers({"Authorization": template, "X": "y"}, environ={}, user=NOBODY, body=NOWHERE) == {
        "X": "y"
    }


def test_openid_facts_that_are_no_credentials_become_blank() -> None:
    assert rendered("<{{LIBRECHAT_OPENID_USER_EMAIL}}>") == "<>"
    assert rendered("<{{LIBRECHAT_OPENID_USER_ID}}>", UserFields(openid=OpenId(user_id="o1"))) == "<o1>"


HOSTILE = st.sampled_from(
    [
        "${A}",
        "x${B}y",
        "{{LIBRECHAT_USER_EMAIL}}",
        "{{V}}",
        "$&",
        "$1",
        r"\1",
        r"\g<0>",
        "$$",
        "{{",
        "}}",
        "${",
        "}",
    ]
)
WORDS = st.text(st.characters(max_codepoint=0xFF), max_size=12)
USER_TEXT = st.lists(HOSTILE | WORDS, max_size=4).map("".join)


@given(
    text=USER_TEXT,
    template=st.sampled_from(["{{LIBRECHAT_USER_NAME}}", "{{V}}", "{{LIBRECHAT_BODY_MESSAGEID}}"]),
)
def test_what_a_user_wrote_is_never_expanded(text: str, template: str) -> None:
    user = UserFields(id="u1", fields={"name": text, "email": "e@example.org"}, variables={"V": text})
    shown = rendered(f"<{template}>", user, BodyIds(message_id=text))

    assert shown is not None
    assert [c for c in shown[1:-1] if c != " "] == [
        c for c in text if c != " " and not (c != "\t" and c < " ") and c != "\x7f"
    ]


@given(value=st.text(max_size=30), template=st.text(max_size=30))
def test_no_header_ever_holds_a_line_break(value: str, template: str) -> None:
    user = UserFields(id=value, fields=dict.fromkeys(USER_FIELDS, value), variables={"V": value})
    shown = render_header(
        f"a\r\n{template}{{{{V}}}}{{{{LIBRECHAT_USER_NAME}}}}${{E}}{{{{LIBRECHAT_BODY_MESSAGEID}}}}z",
        environ={"E": value + "\r\nX: y\0"},
        user=user,
        body=BodyIds(message_id=value),
    )

    assert shown is not None
    assert not set(shown) & set("\r\n\0\x0b\x0c\x1f\x7f")


def test_headers_merge_whatever_the_case_of_their_names() -> None:
    base = {"X-Team": "all", "X-Only": "base", "Anthropic-Beta": "a, b"}
    override = {"x-team": "mine", "anthropic-beta": "b,c"}

    assert merge_headers(base, override) == {"X-Only": "base", "x-team": "mine", "anthropic-beta": "a,b,c"}
    assert base == {"X-Team": "all", "X-Only": "base", "Anthropic-Beta": "a, b"}
    assert merge_headers({}, {}) == {}
    assert merge_headers({}, {"anthropic-beta": "a"}) == {"anthropic-beta": "a"}


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("${KEY}", "${KEY}"),
        ("Bearer ${KEY}", "***${KEY}"),
        ("sk-secret", "***"),
        ("{{LIBRECHAT_USER_ID}}:secret", "{{LIBRECHAT_USER_ID}}***"),
        ("", ""),
    ],
)
def test_a_masked_header_shows_placeholders_and_nothing_else(template: str, shown: str) -> None:
    assert mask(template) == shown


NOON = datetime(2026, 11, 30, 12, 5, 9, 123456, tzinfo=timezone(timedelta(hours=5, minutes=30)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{current_date}}", "2026-11-30 (Monday)"),
        ("{{ Current_Date }}", "2026-11-30 (Monday)"),
        ("{{current_datetime}}", "2026-11-30 12:05:09 +05:30 (Monday)"),
        ("{{iso_datetime}}", "2026-11-30T06:35:09.123Z"),
        ("Hello {{CURRENT_USER}}.", "Hello Ana {{current_date}} ${A} \\1."),
        ("{{other}}", "{{other}}"),
    ],
)
def test_special_variables_of_instructions_are_filled_in_once(text: str, expected: str) -> None:
    assert expand_special(text, now=NOON, user_name="Ana\n{{current_date}} ${A} \\1") == expected


def test_the_current_user_stays_as_written_without_a_name() -> None:
    assert expand_special("{{current_user}}", now=datetime(2026, 1, 1, tzinfo=UTC)) == "{{current_user}}"
    assert expand_special("{{current_datetime}}", now=datetime(2026, 1, 1, tzinfo=UTC)).endswith(
        "+00:00 (Thursday)"
    )


@given(name=USER_TEXT)
def test_a_name_in_instructions_is_never_expanded_and_stays_on_one_line(name: str) -> None:
    shown = expand_special("<{{current_user}}>", now=NOON, user_name=name)

    assert shown == (f"<{' '.join(name.split())}>" if name.split() else "<{{current_user}}>")
    assert len(shown.splitlines()) == 1


def test_a_name_that_is_a_special_variable_is_left_alone() -> None:
    assert expand_special("{{current_user}}", now=NOON, user_name="{{current_date}}") == "{{current_date}}"
