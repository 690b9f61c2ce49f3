"""The rule table: every code a finding may carry, with its name, level and summary.

The long texts stand beside it in `explanations/`, one file a family and one heading a code, and are read when asked for.
A code and its name never change meaning; a retired one redirects.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memagent.config.findings import Level

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCS = "docs/rules.md"
"""Where the generated rule pages stand, relative to the project."""

FAMILIES: Mapping[str, tuple[str, str]] = {
    "0": ("syntax", "Syntax and encoding"),
    "1": ("structure", "Structure"),
    "2": ("values", "Values"),
    "3": ("fields", "Across fields"),
    "4": ("portability", "Portability, environment and secrets"),
}
"""The digit after `MEM`: the explanation file's name, and the family's title."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of fault. `name` reads well after "allow": it names the pattern, and holds no instruction."""

    code: str
    name: str
    level: Level
    summary: str

    @property
    def family(self) -> str:
        return FAMILIES[self.code[3]][1]

    @property
    def anchor(self) -> str:
        return self.code.lower()

    @property
    def url(self) -> str:
        return f"{DOCS}#{self.anchor}"

    @property
    def explanation(self) -> str:
        """Markdown: what the fault is, what LibreChat does about it, and how to mend it."""
        return _explanations(self.code[3])[self.code]


def _explanations(family: str) -> dict[str, str]:
    """Code to text: the sections of one family's file, each opened by `## CODE`."""
    source = Path(__file__).with_name("explanations") / f"{FAMILIES[family][0]}.md"
    sections = source.read_text(encoding="utf-8").split("\n## ")[1:]
    return {code.strip(): text.strip() for code, _, text in (section.partition("\n") for section in sections)}


_E, _W = Level.ERROR, Level.WARNING

_TABLE = (
    ("MEM001", "invalid-yaml", _E, "a text that is no YAML"),
    ("MEM002", "not-utf8", _E, "bytes that are no UTF-8"),
    ("MEM003", "too-large", _E, "a file larger than any configuration"),
    ("MEM004", "too-deep", _E, "more levels of nesting than LibreChat reads"),
    ("MEM005", "runaway-alias", _E, "aliases that never end, or multiply beyond use"),
    ("MEM006", "empty-file", _E, "a file without content"),
    ("MEM007", "tab-indentation", _E, "a tab in front of a key or an item"),
    ("MEM008", "unclosed-quote", _E, "a quote that is never closed"),
    ("MEM009", "reserved-character", _E, "a plain value that starts with a reserved character"),
    ("MEM010", "unknown-tag", _E, "a tag that nobody knows, or that does not fit"),
    ("MEM011", "unknown-alias", _E, "an alias without its anchor"),
    ("MEM012", "several-documents", _E, "more than one document in a file"),
    ("MEM013", "control-character", _E, "an invisible character that YAML forbids"),
    ("MEM014", "unrendered-template", _E, "a template that was not rendered"),
    ("MEM101", "unknown-key", _E, "a key that nobody reads"),
    ("MEM102", "duplicate-key", _E, "a key set twice in one mapping"),
    ("MEM103", "missing-key", _E, "a required key is absent"),
    ("MEM104", "wrong-place", _E, "a known key in a place where nobody reads it"),
    ("MEM105", "empty-section", _E, "a key with nothing after its colon"),
    ("MEM201", "wrong-type", _E, "a value of another type than expected"),
    ("MEM202", "out-of-range", _E, "a number outside its bounds"),
    ("MEM203", "wrong-length", _E, "a list or text shorter or longer than allowed"),
    ("MEM204", "unknown-choice", _E, "a value that is not one of the choices"),
    ("MEM205", "bad-url", _E, "a text where a URL is expected"),
    ("MEM206", "bad-format", _E, "a text that breaks the rule for its field"),
    ("MEM207", "reserved-name", _E, "a custom endpoint named like a built-in one"),
    ("MEM208", "boolean-word", _E, "`yes`, `no`, `on` or `off` where `true` or `false` is expected"),
    ("MEM209", "version-number", _E, "`version` without quotes, read as a number"),
    ("MEM210", "no-matching-form", _E, "a block that fits none of its allowed forms"),
    ("MEM211", "unresolved-url", _E, "a URL made of a variable that is not set"),
    ("MEM212", "variable-not-read-here", _E, "`${NAME}` where LibreChat does not replace it"),
    ("MEM213", "custom-params", _E, "parameter definitions that LibreChat cannot build"),
    ("MEM214", "broken-requirement", _E, "fields that do not go together"),
    ("MEM301", "agent-incomplete", _E, "a memory agent without `id`, and without `provider` and `model`"),
    ("MEM302", "agent-id-and-inline", _E, "a memory agent with both `id` and `provider`/`model`"),
    ("MEM303", "window-larger-than-budget", _W, "a message window that cannot fit the input budget"),
    ("MEM304", "unknown-provider", _E, "a memory provider that names no endpoint and no built-in"),
    ("MEM305", "agent-not-enabled", _W, "a memory agent without `enabled`"),
    ("MEM306", "no-valid-keys", _E, "an empty `validKeys`, which allows nothing"),
    ("MEM307", "repeated-valid-key", _E, "a key listed twice in `validKeys`"),
    ("MEM308", "unstorable-key", _W, "a key that LibreChat's own API refuses to store"),
    ("MEM309", "char-limit-over-token-limit", _W, "a `charLimit` that `tokenLimit` can never hold"),
    ("MEM310", "personalize-off", _W, "an agent beside `personalize: false`"),
    ("MEM311", "senseless-limit", _E, "a zero, negative or fractional limit"),
    ("MEM312", "instructions-name-unknown-key", _W, "instructions that name a key outside `validKeys`"),
    ("MEM313", "model-not-listed", _W, "a model that its endpoint does not list"),
    ("MEM314", "unused-beside-id", _E, "settings beside `agent.id` that the saved agent overrides"),
    ("MEM315", "endpoint-incomplete", _E, "a custom endpoint that never appears"),
    ("MEM316", "repeated-endpoint", _E, "two custom endpoints of one name"),
    ("MEM317", "unknown-agent", _E, "a memory agent's `id` that no saved agent has"),
    ("MEM401", "yaml-version-ambiguous", _W, "a value that YAML 1.1 and YAML 1.2 read differently"),
    ("MEM402", "retired-key", _W, "a key that LibreChat once read and no longer does"),
    ("MEM403", "unset-variable", _E, "a variable that is not set"),
    ("MEM404", "joined-variables", _E, "a value that starts with one `${…}` and ends with another"),
    ("MEM405", "secret-in-clear", _W, "a secret typed into the file"),
    ("MEM406", "unknown-placeholder", _E, "a `{{…}}` that nobody replaces"),
    ("MEM407", "withheld-variable", _E, "one of the eight variables that are never handed out"),
    ("MEM408", "malformed-variable", _W, "a `$` spelling that LibreChat does not replace"),
)

RULES: Mapping[str, Rule] = {row[0]: Rule(*row) for row in _TABLE}

REDIRECTS: Mapping[str, str] = {}
"""Retired code or name to the code that took over."""

_BY_NAME: Mapping[str, str] = {rule.name: code for code, rule in RULES.items()}


def find(code_or_name: str) -> Rule | None:
    """The rule of a code (any case) or of a kebab name; a retired one leads to its successor."""
    wanted = code_or_name.strip()
    code = (
        REDIRECTS.get(wanted.upper())
        or REDIRECTS.get(wanted.lower())
        or _BY_NAME.get(wanted.lower(), wanted.upper())
    )
    return RULES.get(code)


def pages() -> str:
    """`docs/rules.md`: every rule under its code, in the families' order."""
    parts = [
        "# What `memagent validate` finds",
        (
            "Generated from the rule table (`make generate`). Each finding has a code and a name that never change; either is "
            "what `memagent explain` takes. The level is the usual one: what LibreChat ignores is an error in `memory` and "
            "`endpoints.custom` and a warning elsewhere."
        ),
    ]
    for digit, (_, title) in FAMILIES.items():
        parts.append(f"## {title}")
        parts += [_page(rule) for rule in RULES.values() if rule.code[3] == digit]
    return "\n\n".join(parts) + "\n"


def _page(rule: Rule) -> str:
    head = f"### {rule.code}\n\n**{rule.name}** ({rule.level}): {rule.summary}"
    return f"{head}\n\n{rule.explanation}"


if __name__ == "__main__":
    sys.stdout.write(pages())
