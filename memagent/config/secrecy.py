"""What of a configuration may be shown: names always, secrets never.

Masking keeps every offset of a text, so positions found in the text hold in the masked one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from memagent.config.nodes import Mapping, Scalar, Sequence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memagent.config.document import Document
    from memagent.config.nodes import Node

Path: TypeAlias = tuple[str | int, ...]

ELLIPSIS = "…"
HIDDEN = "\0"
"""Stands for each further character of a masked stretch; no YAML text can hold one."""

MIN_FRAGMENT_CHARS = 6
"""A shorter secret is not looked for elsewhere: it would mask ordinary words."""

MAX_FRAGMENTS = 200
"""Of more secrets than this, the rest is hidden where it stands and not looked for elsewhere: that would take minutes."""

MIN_WORD_CHARS = 2
"""Of a broken file every word under a secret's name is hidden, but for those that are no more than punctuation."""

PUBLIC_VALUES = frozenset(
    {"user_provided", "none", "null", "ollama", "dummy", "not-needed", "no-key", "sk-no-key-required"}
)
"""What people write into `apiKey` where there is no key to keep."""

_SECRET_NAME = re.compile(
    r"(?:api_?k[a-z]{1,3}|api_?key_?preview|token|secret|password|passwd|passphrase|authorization|credentials?|cookie|dsn"
    r"|(?:secret|access|private|auth|license|session|encryption)_?key)$"
)
_SHAPED = re.compile(
    r"\b(?:sk-(?:[A-Za-z]{1,12}\d{0,3}-){0,4}[A-Za-z0-9_]{20,}[\w-]*|(?:gsk|hf|r8|jina|gh[pousr])_[A-Za-z0-9]{20,}"
    r"|(?:xai|pplx|tvly|fc)-[A-Za-z0-9]{24,}|(?:glpat|xox[abpr])-[\w-]{16,}|AIza[\w-]{30,}|AKIA[A-Z0-9]{14,}"
    r"|github_pat_\w{20,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)
_USER_INFO = re.compile(r"(?<=://)[^/\s:@'\"]*:[^/\s@'\"]+(?=@)")
_NAMED = re.compile(r"(?<![\w.])(?P<name>[A-Za-z][\w.-]{0,63}+)[\"']?[ \t]*[:=][ \t]*")
_VALUE = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*\"?|'[^'\n]*'?"
    r"|(?:Bearer |Basic )?(?![#\"'])(?:\$\{[^}\n]*\}|\{\{[^}\n]*\}\}|[^\s,}\]\"'])+"
)
_LINE = re.compile(
    r"(?P<indent>[ \t]*)(?:#[ \t]*)?(?:-[ \t]+)*[\"']?(?P<name>[\w.-]+)[\"']?[ \t]*:(?P<value>.*)"
)
_HEADERS = re.compile(r"headers[\"']?[ \t]*:", re.IGNORECASE)
_FLOW_PAIR = re.compile(
    r":[ \t]+(?P<value>\"(?:[^\"\\\n]|\\.)*\"?|'[^'\n]*'?|(?:\$\{[^}\n]*\}|\{\{[^}\n]*\}\}|[^,}\n])+)"
)
_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|\{\{[^{}\n]+\}\}")
_ANY_VARIABLE = re.compile(r"\$\{")
_DEFAULTED = re.compile(r"(?<=\$\{)[A-Za-z_][A-Za-z0-9_]*(?P<default>[^A-Za-z0-9_}\s][^}\n]{0,500}+)(?=\})")


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether a key of that name holds a secret: `apiKey`, `x-api-key`, `client_secret`, `GITHUB_TOKEN`."""
    return (
        _SECRET_NAME.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().replace("-", "_")) is not None
    )


def is_secret(path: Path) -> bool:
    """Whether the value at a document path is shown by name only."""
    names = [part for part in path if isinstance(part, str)]
    return bool(names) and (is_secret_name(names[-1]) or _under_headers(names))


def _under_headers(names: list[str]) -> bool:
    return any(name.lower().endswith("headers") for name in names[:-1])


def looks_secret(text: str) -> bool:
    """Whether a text has the shape of a well-known kind of key."""
    return _SHAPED.search(text) is not None


def secrets(document: Document) -> tuple[str, ...]:
    """The secret texts of a document that are long enough to be recognised elsewhere, longest first."""
    found: dict[str, None] = {}
    for path, scalar in scalars(document.root):
        if is_secret(path) and isinstance(scalar.value, str) and scalar.value.strip() not in PUBLIC_VALUES:
            parts = (part.strip() for part in _VARIABLE.split(scalar.value))
            found.update((part, None) for part in parts if len(part) >= MIN_FRAGMENT_CHARS)
        if len(found) >= MAX_FRAGMENTS:
            break
    return tuple(sorted(found, key=len, reverse=True))


def scalars(node: Node | None, path: Path = ()) -> Iterator[tuple[Path, Scalar]]:
    """Every scalar below a node with its path, in document order."""
    if isinstance(node, Scalar):
        yield path, node
    elif isinstance(node, Mapping):
        for entry in node.entries.values():
            yield from scalars(entry.value, (*path, entry.key))
    elif isinstance(node, Sequence):
        for index, item in enumerate(node.items):
            yield from scalars(item, (*path, index))


def hide(text: str, fragments: tuple[str, ...]) -> str:
    """A message without the secrets in it: known ones, ones of a known shape, passwords in URLs, defaults of variables."""
    for fragment in fragments:
        text = text.replace(fragment, ELLIPSIS)
    text = _DEFAULTED.sub(lambda match: match[0][: match.start("default") - match.start()] + ELLIPSIS, text)
    return _USER_INFO.sub(ELLIPSIS, _SHAPED.sub(ELLIPSIS, text))


def hide_named(text: str) -> str:
    """A stretch of a file without what stands behind a secret's name in it: `--api-key=…`."""
    parts, end = [], 0
    for start, stop in _named(text):
        parts += [text[end:start], ELLIPSIS]
        end = stop
    return "".join([*parts, text[end:]])


def masked(document: Document) -> str:
    """The document's text with its secrets hidden, in comments and broken files too."""
    text = document.text
    chars = list(text)
    for start, end in _stretches(document):
        for index in range(start, end):
            if chars[index] not in "\r\n":
                chars[index] = HIDDEN
        if start < end and chars[start] == HIDDEN:
            chars[start] = ELLIPSIS
    return "".join(chars)


def hidden_words(document: Document) -> tuple[str, ...]:
    """The words that masking hides, also without the sign that YAML gives a meaning to: for a file that has no values."""
    words: set[str] = set()
    for start, end in _stretches(document):
        for word in document.text[start:end].split():
            words.update((word, word.lstrip("*&!\"'"), word.strip("*&!\"'")))
    return tuple(sorted((word for word in words if len(word) > MIN_WORD_CHARS), key=len, reverse=True))


def _stretches(document: Document) -> Iterator[tuple[int, int]]:
    text = document.text
    for fragment in secrets(document):
        for line in fragment.splitlines():
            if len(line.strip()) >= MIN_FRAGMENT_CHARS:
                yield from (match.span() for match in re.finditer(re.escape(line.strip()), text))
    for match in _SHAPED.finditer(text):
        yield match.span()
    for match in _USER_INFO.finditer(text):
        yield match.span()
    for match in _DEFAULTED.finditer(text):
        yield match.span("default")
    yield from _named(text)
    yield from _secret_blocks(text)


def _named(text: str) -> Iterator[tuple[int, int]]:
    end = 0
    for match in _NAMED.finditer(text):
        value = (
            _VALUE.match(text, match.end())
            if match.start() >= end and is_secret_name(match["name"])
            else None
        )
        if value:
            end = value.end()
            yield from _unquoted(text, *value.span())


def _secret_blocks(text: str) -> Iterator[tuple[int, int]]:
    """What a secret key and `headers:` hold, line by line and by indentation: that much holds in a broken file too."""
    offset, depth, whole = 0, -1, False
    for line in text.splitlines(keepends=True):
        body = line.strip()
        indent = len(line) - len(line.lstrip(" \t"))
        match = _LINE.match(line)
        # Only a line that is sound by itself ends a block: what is damaged may still belong to it.
        if match and depth >= 0 and indent <= depth:
            depth = -1
        if body and depth >= 0:
            start = match.start("value") if match and not whole else indent
            yield from _unquoted(text, offset + start, offset + len(line.rstrip()))
        elif match and is_secret_name(match["name"]):
            depth, whole = indent, True
            yield from _unquoted(text, offset + match.start("value"), offset + _content_end(line))
        elif opened := _HEADERS.search(line):
            depth, whole = indent, False
            for pair in _FLOW_PAIR.finditer(line, opened.end()):
                yield from _unquoted(text, offset + pair.start("value"), offset + pair.end("value"))
        offset += len(line)


def _content_end(line: str) -> int:
    """Where a line ends without its comment."""
    comment = line.find(" #")
    return len((line if comment < 0 else line[:comment]).rstrip())


def _unquoted(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a value that are no quotes, no placeholder and no public word."""
    while start < end and text[start] in " \t\"'":
        start += 1
    while end > start and text[end - 1] in " \t\"'":
        end -= 1
    if text[start:end] in PUBLIC_VALUES:
        return
    for match in _VARIABLE.finditer(text, start, end):
        if match.start() > start:
            yield start, match.start()
        start = match.end()
    if start < end:
        yield start, end
