"""Write LibreChat's answers beside the cases that the tests hold memagent to: `tests/cases/verdict/*.json`, `yaml.json`.

    python benchmarks/record.py

The tests themselves need no node. A case that the oracle answers in another way than before shows up in the diff.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.oracle import ROOT, ask, install

CASES = ROOT / "tests" / "cases"

READER = """
const yaml = require('js-yaml');
const show = (v) => v === undefined || v === null ? null
  : typeof v === 'boolean' || typeof v === 'string' ? v
  : typeof v === 'number' ? {number: String(v)}
  : v instanceof Date ? {date: v.getTime()}
  : v instanceof Uint8Array ? {bytes: Array.from(v)}
  : Array.isArray(v) ? v.map(show)
  : {object: Object.keys(v).map((k) => [k, show(v[k])])};
const texts = JSON.parse(require('fs').readFileSync(0, 'utf8'));
console.log(JSON.stringify(texts.map((text) => {
  try { return {value: show(yaml.load(text))}; } catch (e) { return {error: e.reason || e.message}; }
})));
"""


def main() -> None:
    files = sorted((CASES / "verdict").glob("*.yaml"))
    for file, answer in zip(files, ask(files), strict=True):
        rows = ",\n".join(json.dumps(issue, ensure_ascii=False) for issue in answer.issues)
        said = (
            f'{{"outcome": "{answer.outcome}", "issues": [\n{rows}\n]}}\n'
            if rows
            else json.dumps({"outcome": answer.outcome, "issues": []}) + "\n"
        )
        file.with_suffix(".json").write_text(said, encoding="utf-8")
    path = CASES / "yaml.json"
    texts = [case["text"] for case in json.loads(path.read_text(encoding="utf-8"))]
    run = subprocess.run(
        ["node", "-e", READER],
        cwd=install(),
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    cases = [{"text": text, **said} for text, said in zip(texts, json.loads(run.stdout), strict=True)]
    rows = ",\n".join(json.dumps(case) for case in cases)
    path.write_text(f"[\n{rows}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
