"""The structure holds: imports point downwards, modules and functions stay small, heavy parts stay at their one door."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "memagent"
MODULES = sorted(PACKAGE.rglob("*.py"))
# Parsed once, and before any other test has run into the recursion limit, after which Python 3.11 may refuse to.
TREES = {path: ast.parse(path.read_text()) for path in MODULES}

# Lowest row first; a module imports only from its own row and the rows below. The longest matching prefix decides.
ROWS: tuple[tuple[str, ...], ...] = (
    ("memagent.errors", "memagent.deadline"),
    ("memagent.config",),
    (
        "memagent.memory",
        "memagent.admission",
        "memagent.tokens",
        "memagent.lexicon",
        "memagent.matching",
        "memagent.window",
        "memagent.decay",
        "memagent.turn",
    ),
    ("memagent.store", "memagent.llm"),
    ("memagent.sessions",),
    ("memagent.agent",),
    ("memagent.service",),
    ("memagent.turns", "memagent.evaluation"),
    ("memagent.report", "memagent.api"),
    (
        "memagent.cli",
        "memagent.api.app",
        "memagent.worker",
        "memagent.wiring",
        "memagent.__main__",
        "memagent",
    ),
)
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60
BANNED_NAMES = {"utils", "helpers", "common", "manager", "handler", "handlers", "base", "misc", "core"}
ONE_DOOR = {"litellm": "memagent.llm.gateway", "docket": "memagent.turns.wakes"}
TABLES = ("memagent.config.librechat", "memagent.config.rules")  # data: as long as what they describe


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def row_of(module: str) -> int:
    best = max(
        (
            (len(prefix), row)
            for row, prefixes in enumerate(ROWS)
            for prefix in prefixes
            if under(module, prefix)
        ),
        default=None,
    )
    assert best is not None, f"{module} stands in no room: add it to ROWS"
    return best[1]


def under(module: str, prefix: str) -> bool:
    return module == prefix or module.startswith(prefix + ".")


def imports(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_from_its_row_and_below(path: Path) -> None:
    here = name_of(path)
    upward = {
        imported
        for imported in imports(TREES[path])
        if under(imported, "memagent") and imported != "memagent" and row_of(imported) > row_of(here)
    }
    # Values of a higher row may be named in annotations of a port: those arrows carry no code.
    assert not upward - typing_only(TREES[path])


def typing_only(tree: ast.Module) -> set[str]:
    blocks = [
        node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    ]
    return {name for block in blocks for name in imports(ast.Module(block.body, []))}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_small_enough_to_read(path: Path) -> None:
    if not any(under(name_of(path), table) for table in TABLES):
        assert len(path.read_text().splitlines()) <= MAX_MODULE_LINES


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_function_is_small_enough_to_read(path: Path) -> None:
    long = {
        node.name: node.end_lineno - node.lineno
        for node in ast.walk(TREES[path])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno > MAX_FUNCTION_LINES
    }
    assert not long


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_module_is_a_drawer_for_everything(path: Path) -> None:
    assert not BANNED_NAMES & set(name_of(path).split("."))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_heavy_part_has_one_door(path: Path) -> None:
    roots = {name.split(".")[0] for name in imports(TREES[path])}
    assert not {part for part, door in ONE_DOOR.items() if part in roots and name_of(path) != door}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_the_environment_is_read_only_where_the_wiring_is(path: Path) -> None:
    reads = [
        node
        for node in ast.walk(TREES[path])
        if isinstance(node, ast.Attribute)
        and node.attr in {"environ", "getenv"}
        and ast.unparse(node.value) == "os"
    ]
    allowed = ("memagent.cli", "memagent.api.app", "memagent.wiring", "memagent.llm.gateway")
    assert not reads or any(under(name_of(path), module) for module in allowed)
