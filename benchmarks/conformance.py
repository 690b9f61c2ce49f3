"""How far memagent's verdict agrees with LibreChat's own, on every corpus file and on thousands of mutants.

    python benchmarks/conformance.py [--mutants N] [--seed N]

Exits with 1 at any disagreement, and with 0 and a line that says so where node or the corpus is not at hand.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import dataclass, field

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parent.parent))

from benchmarks.mutants import invent, mutate
from benchmarks.oracle import CORPUS, ROOT, Answer, Missing, ask, ask_texts, install
from memagent.config.document import parse, plain
from memagent.config.librechat.verdict import Verdict, verdict

SHOWN = 5


@dataclass
class Tally:
    """How many of a kind agree, in what, and which do not."""

    name: str
    total: int = 0
    verdicts: int = 0
    first: int = 0
    paths: int = 0
    words: int = 0
    apart: list[str] = field(default_factory=list)

    def count(self, label: str, mine: Verdict, theirs: Answer) -> None:
        issues = tuple(
            (issue.path, issue.code, issue.message) for issue in mine.issues if issue.code != "custom_params"
        )
        self.total += 1
        same = mine.outcome == theirs.outcome
        first = issues[:1] and issues[0][0] if issues else ()
        their_first = theirs.issues[:1] and theirs.issues[0][0] if theirs.issues else ()
        self.verdicts += same
        self.first += same and first == their_first
        self.paths += same and {issue[0] for issue in issues} == {issue[0] for issue in theirs.issues}
        self.words += same and issues == theirs.issues
        if not same or issues != theirs.issues:
            self.apart.append(
                f"{label}\n    ours    {mine.outcome} {issues[:3]} {mine.reason}\n    theirs  {theirs.outcome} {theirs.issues[:3]} {theirs.detail}"
            )

    def report(self) -> bool:
        parts = (
            ("verdict", self.verdicts),
            ("first path", self.first),
            ("all paths", self.paths),
            ("every word", self.words),
        )
        print(
            f"{self.name:22} {self.total:6}  "
            + "  ".join(f"{name} {100 * n / max(1, self.total):.2f} %" for name, n in parts)
        )
        for text in self.apart[:SHOWN]:
            print("  " + text)
        return not self.apart


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--mutants", type=int, default=12000)
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    try:
        install()
        files = sorted(CORPUS.iterdir())
    except (Missing, FileNotFoundError) as lack:
        print(f"conformance skipped: {lack}")
        return 0
    texts = [file.read_bytes() for file in files]
    agree = [_compare("corpus", [str(file.name) for file in files], texts, ask(files), {})]
    environ = {
        "A": "https://a.example/",
        "B": "bb",
        "MCP_URL": "https://mcp.example/sse",
        "JWT_SECRET": "http://no",
    }
    agree.append(_compare_schema([file.name for file in files], texts, ask(files)))
    dependent = [
        (file, text)
        for file, text in zip(files, texts, strict=True)
        if b"${" in text and b"mcpServers" in text
    ]
    agree.append(
        _compare(
            "corpus, variables set",
            [f.name for f, _ in dependent],
            [t for _, t in dependent],
            ask([f for f, _ in dependent], environ),
            environ,
        )
    )
    rng = random.Random(asked.seed)
    small = [text.decode("utf-8", "replace") for text in texts if len(text) < 60_000]
    half = asked.mutants // 2
    for name, made in (
        ("mutants of the corpus", [mutate(rng.choice(small), rng) for _ in range(half)]),
        ("invented", [invent(rng) for _ in range(half)]),
    ):
        encoded = [text.encode() for text in made]
        agree.append(_compare(name, made, encoded, ask_texts(encoded), {}))
    return 0 if all(agree) else 1


def _compare_schema(names: list[str], texts: list[bytes], answers: list[Answer]) -> bool:
    """Whether `schemas/librechat.schema.json` takes what LibreChat takes, and only rules it cannot say part the two."""
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(json.loads((ROOT / "schemas" / "librechat.schema.json").read_text()))
    agreed, unsaid, total = 0, 0, 0
    apart: list[str] = []
    for name, text, theirs in zip(names, texts, answers, strict=True):
        document = parse(text, name)
        if document.root is None or theirs.outcome == "defaults":
            continue
        total += 1
        valid = validator.is_valid(plain(document.root))
        ruled = theirs.outcome == "crashes" or all(
            code in ("custom", "invalid_string") for _, code, _ in theirs.issues
        )
        if valid == (theirs.outcome == "starts"):
            agreed += 1
        elif valid and ruled:
            unsaid += 1
        else:
            apart.append(f"{name}: valid {valid}, {theirs.outcome} {theirs.issues[:3]}")
    share = 100 * agreed / max(1, total)
    print(
        f"{'JSON Schema':22} {total:6}  agrees {share:.2f} %  rules it cannot say {unsaid}  apart {len(apart)}"
    )
    for text in apart[:SHOWN]:
        print("  " + text)
    return not apart


def _compare(
    name: str, labels: list[str], texts: list[bytes], answers: list[Answer], environ: dict[str, str]
) -> bool:
    tally = Tally(name)
    for label, text, theirs in zip(labels, texts, answers, strict=True):
        tally.count(label[-600:], verdict(parse(text, "f"), environ), theirs)
    return tally.report()


if __name__ == "__main__":
    raise SystemExit(main())
