"""LibreChat's published schema, asked in batches: the reference that memagent's verdict is held against."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
SHARED = Path(os.environ.get("MEMAGENT_SHARED", ROOT.parent / "shared"))
CORPUS = SHARED / "corpus" / "files"


class Missing(Exception):
    """Something that the comparison needs is not on this machine."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the oracle says of one text; `outcome` in the words of `memagent.config.librechat.verdict`."""

    outcome: str
    issues: tuple[tuple[tuple[str | int, ...], str, str], ...]
    detail: str


def install() -> Path:
    """The oracle's folder below `build/`, with its packages.

    Raises:
        Missing: no node, no npm, or no oracle to copy.

    """
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            raise Missing(f"{tool} is not installed")
    if not (SHARED / "oracle" / "verdict.cjs").exists():
        raise Missing(f"no oracle in {SHARED}")
    folder = BUILD / "oracle"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "verdict.cjs"):
        (folder / name).unlink(missing_ok=True)
        shutil.copyfile(SHARED / "oracle" / name, folder / name)
    if not (folder / "node_modules" / "librechat-data-provider").exists():
        subprocess.run(
            ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--silent"],
            cwd=folder,
            check=True,
        )
    return folder


def ask(files: list[Path], environ: dict[str, str] | None = None) -> list[Answer]:
    """One answer for each file, in order, in an environment of these variables only."""
    folder = install()
    run = subprocess.run(
        ["node", "verdict.cjs"],
        cwd=folder,
        input="".join(f"{file}\n" for file in files),
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], **(environ or {})},
    )
    return [_answer(json.loads(line)) for line in run.stdout.splitlines()]


def ask_texts(texts: list[bytes], environ: dict[str, str] | None = None) -> list[Answer]:
    """One answer for each text, in order."""
    folder = BUILD / "texts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files = [folder / f"{number}.yaml" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text)
    return ask(files, environ)


def _answer(said: dict) -> Answer:
    issues = tuple((tuple(issue["path"]), issue["code"], issue["message"]) for issue in said["issues"])
    if "threw" in said:
        return Answer("crashes", (), said["threw"])
    if "postError" in said:
        return Answer("crashes", (), said["postError"])
    if "yamlError" in said or "loadError" in said:
        return Answer("defaults", (), str(said.get("yamlError") or said["loadError"]))
    if any("imageOutputType" in path for path, _, _ in issues):
        return Answer("crashes", issues, "")
    return Answer("starts" if said["ok"] else "exits", issues, "")
