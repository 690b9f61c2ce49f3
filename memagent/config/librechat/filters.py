"""Filters of personal data (`filters`, `messageFilter`; spec/librechat.md §2.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memagent.config.librechat.re2 import program_size
from memagent.config.zod import Choice, List, Needed, Object, Refined, Run, Strict, Text, length, rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from memagent.config.zod import Problem, Schema

MAX_PATTERNS: Final = 256
MAX_CHARACTERS: Final = 8192
MAX_INSTRUCTIONS: Final = 8192

TOO_MANY: Final = f"At most {MAX_PATTERNS} custom PII patterns may be configured in total"
TOO_LONG: Final = f"Custom PII regexes may contain at most {MAX_CHARACTERS} characters in total"
TOO_LARGE: Final = f"Custom PII regexes may compile to at most {MAX_INSTRUCTIONS} instructions in total"

FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "messages": (
        "name",
        "text",
        "summary",
        "quote",
        "answer",
        "decision_response",
        "decision_reason",
        "content_part",
        "attachment_reference",
        "assembled_context",
    ),
    "prompts": (
        "name",
        "description",
        "oneliner",
        "category",
        "command",
        "text",
        "preset_text",
        "system",
        "context",
        "instructions",
        "additional_instructions",
        "greeting",
        "example_input",
        "example_output",
    ),
    "agentInstructions": (
        "name",
        "category",
        "description",
        "instructions",
        "additional_instructions",
        "edge_description",
        "edge_prompt",
        "edge_prompt_key",
        "artifacts",
        "support_contact_name",
        "support_contact_email",
    ),
    "conversationStarters": ("text",),
    "conversationTitles": ("title",),
    "feedback": ("text",),
    "skills": (
        "name",
        "display_title",
        "description",
        "category",
        "frontmatter",
        "instructions",
        "imported_text",
        "file_name",
        "file_text",
    ),
    "memories": (
        "key",
        "value",
        "summary",
    ),
    "files": (
        "name",
        "content",
        "extracted_text",
        "transcript",
        "uri",
    ),
    "toolArguments": (
        "name",
        "arguments",
        "output",
    ),
    "modelParameters": (
        "stop",
        "request_fields",
        "response_format",
        "metadata",
    ),
    "actionMetadata": (
        "raw_spec",
        "domain",
        "privacy_policy_url",
        "authorization_type",
        "custom_auth_header",
        "authorization_content_type",
        "authorization_url",
        "client_url",
        "scope",
        "token_exchange_method",
        "api_key",
        "oauth_client_id",
        "oauth_client_secret",
    ),
}
"""What can be inspected, by source."""

REGEX: Final = Refined(
    Text(min=1, max=512),
    rule(lambda regex: program_size(regex) is not None, "Regex must use supported linear-time syntax"),
)
PATTERN: Final = Strict(
    id=Needed(Text(min=1, max=256)), label=Needed(Text(min=1, max=512)), regex=Needed(REGEX)
)


def _personal_data(fields: tuple[str, ...], **more: Schema) -> Schema:
    return Strict(
        action=Choice("block", "audit"),
        fields=List(Choice(*fields), min=1, max=256),
        starterPatterns=List(Choice("sk_prefix", "bearer_header", "api_key_header"), max=256),
        customPatterns=List(PATTERN, max=MAX_PATTERNS),
        **more,
    )


def _source(name: str) -> Schema:
    if name == "messages":
        handed_in = Choice("model_output", "inspect")
        return Strict(pii=_personal_data(FIELDS[name]), unattributedAssistantContent=handed_in)
    if name == "files":
        return Strict(pii=_personal_data(FIELDS[name], uninspectable=Choice("allow", "block")))
    return Strict(pii=_personal_data(FIELDS[name]))


def _patterns(filters: dict[str, Any]) -> Iterator[str]:
    for source in filters.values():
        for pattern in source.get("pii", {}).get("customPatterns", ()):
            yield pattern["regex"]


def _totals(filters: dict[str, Any], _run: Run) -> Iterable[Problem]:
    regexes = list(_patterns(filters))
    if len(regexes) > MAX_PATTERNS:
        yield (), TOO_MANY
    if sum(length(regex) for regex in regexes) > MAX_CHARACTERS:
        yield (), TOO_LONG
    if sum(program_size(regex) or 0 for regex in regexes) > MAX_INSTRUCTIONS:
        yield (), TOO_LARGE


FILTERS: Final = Refined(Strict(**{name: _source(name) for name in FIELDS}), _totals)


def _message_patterns(pii: dict[str, Any], _run: Run) -> Iterable[Problem]:
    characters = instructions = 0
    for index, pattern in enumerate(pii.get("customPatterns", ())):
        characters += length(pattern["regex"])
        size = program_size(pattern["regex"])
        instructions += size or 0
        if size is None:
            yield (
                ("customPatterns", index, "regex"),
                "Unsupported regex: not compatible with the RE2 engine (no backreferences, lookaround, or control escapes)",
            )
    if characters > MAX_CHARACTERS:
        yield ("customPatterns",), TOO_LONG
    if instructions > MAX_INSTRUCTIONS:
        yield ("customPatterns",), TOO_LARGE


MESSAGE_FILTER: Final = Object(
    pii=Refined(
        Object(
            starterPatterns=List(Text(max=256), max=256),
            customPatterns=List(
                Object(
                    id=Needed(Text(min=1, max=256)),
                    label=Needed(Text(min=1, max=512)),
                    regex=Needed(Text(min=1, max=512)),
                ),
                max=MAX_PATTERNS,
            ),
        ),
        _message_patterns,
    )
)
