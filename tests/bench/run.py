"""Measures blastyard against bare BLAST+ and against the targets, and prints the table.

    scripts/bench                 everything
    scripts/bench dropin store    only these parts
    scripts/bench --json FILE     writes the figures too
    scripts/bench --quick         fewer runs, for trying the bench itself

Ratios are of two commands run in turn in one session; every figure is a median.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import cluster_cost
import dropin
import idle
import intake
import slot
import store
from figure import Figure, Setting, table

import cluster

PARTS: dict[str, Callable[[Setting], list[Figure]]] = {
    "dropin": dropin.measure,
    "slot": slot.measure,
    "store": store.measure,
    "intake": intake.measure,
    "idle": idle.measure,
    "cluster": cluster.measure,
    "cluster-cost": cluster_cost.measure,
}


def machine() -> dict[str, str]:
    """The machine in words: figures mean nothing without it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory:.0f} GiB",
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="measure blastyard")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], default=[])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="blastyard-bench-"))
    figures: list[Figure] = []
    try:
        for name in asked.parts or PARTS:
            print(f"measuring: {name}", file=sys.stderr, flush=True)
            figures += PARTS[name](Setting(root / name, quick=asked.quick))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    print(table(figures))
    if asked.json:
        written = {"machine": machine(), "figures": [figure.as_dict() for figure in figures]}
        asked.json.write_text(json.dumps(written, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
