"""memagent's side of the comparison with node: file names on standard input, one JSON verdict a line on standard output."""

from __future__ import annotations

import json
import os
import sys

from memagent.config.document import parse
from memagent.config.librechat.verdict import verdict


def main() -> None:
    write = sys.stdout.write
    for line in sys.stdin:
        name = line.rstrip("\n")
        with open(name, "rb") as file:  # noqa: PTH123 - pathlib costs a start more than this costs in all
            judged = verdict(parse(file.read(), name), os.environ)
        issues = [
            {"path": issue.path, "code": issue.code, "message": issue.message} for issue in judged.issues
        ]
        write(json.dumps({"file": name, "ok": judged.ok, "outcome": judged.outcome, "issues": issues}) + "\n")


main()
