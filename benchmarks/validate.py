"""How long memagent and node take for the same verdicts: the whole corpus in one process, and one small file from cold.

    python benchmarks/validate.py [--runs N]

`command` is `memagent validate` on that file, checks and report included. Otherwise both sides print the same JSON lines. Runs alternate; the best of each counts, as wall time and as processor time, which
other work on the machine disturbs less. Prints a table and, on the last line, one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.oracle import CORPUS, Missing, install

ROOT = Path(__file__).resolve().parent.parent
SMALL = """version: "1.3.17"
memory:
  tokenLimit: 2000
  agent: {enabled: true, provider: Mistral, model: mistral-small}
endpoints:
  custom:
    - name: Mistral
      apiKey: "${MISTRAL_API_KEY}"
      baseURL: https://api.mistral.ai/v1
      models: {default: [mistral-small]}
"""


def timed(command: list[str], stdin: str, folder: Path) -> tuple[float, float]:
    """Wall and processor seconds of one run."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    subprocess.run(
        command, input=stdin, text=True, cwd=folder, env=environ, stdout=subprocess.DEVNULL, check=True
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def best(sides: dict[str, tuple[list[str], Path]], stdin: str, runs: int) -> dict[str, tuple[float, float]]:
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for _ in range(runs):
        for name, (command, folder) in sides.items():
            measured[name].append(timed(command, stdin, folder))
    return {
        name: (min(wall for wall, _ in all_runs), min(cpu for _, cpu in all_runs))
        for name, all_runs in measured.items()
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=7)
    runs = options.parse_args().runs
    try:
        oracle = install()
        corpus = "".join(f"{file}\n" for file in sorted(CORPUS.iterdir()))
    except (Missing, FileNotFoundError) as lack:
        print(f"benchmark skipped: {lack}")
        return 0
    sides = {
        "memagent": ([sys.executable, "-P", str(ROOT / "benchmarks" / "judge.py")], ROOT),
        "node": (["node", "verdict.cjs"], oracle),
    }
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as small:
        small.write(SMALL)
        small.flush()
        results = {
            "corpus": best(sides, corpus, runs),
            "cold_start": best(sides, f"{small.name}\n", runs),
            "command": best(
                {
                    "memagent": (
                        [str(Path(sys.executable).with_name("memagent")), "validate", small.name],
                        ROOT,
                    ),
                    "node": sides["node"],
                },
                f"{small.name}\n",
                runs,
            ),
        }
    report: dict[str, dict[str, float]] = {}
    print(f"{'':12} {'memagent':>20} {'node':>20} {'node / memagent':>18}")
    for name, result in results.items():
        (ours, our_cpu), (theirs, their_cpu) = result["memagent"], result["node"]
        report[name] = {
            "memagent_s": round(ours, 4), "node_s": round(theirs, 4), "ratio": round(theirs / ours, 2),
            "memagent_cpu_s": round(our_cpu, 4), "node_cpu_s": round(their_cpu, 4), "cpu_ratio": round(their_cpu / our_cpu, 2),
        }  # fmt: skip
        print(
            f"{name:12} {ours:10.3f} {our_cpu:7.3f} s {theirs:10.3f} {their_cpu:7.3f} s {theirs / ours:9.2f} {their_cpu / our_cpu:7.2f}"
        )
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
