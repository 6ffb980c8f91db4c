"""One foreign submitter as a process: prints a line of JSON for each thing it does.

Ends with 0 when every search has ended. SIGTERM ends it where it stands, as a crash would.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from blastyard.testing.foreign.kind import KINDS, Pace, Rules, Setup
from blastyard.testing.foreign.submitter import ForeignSubmitter
from blastyard.testing.foreign.time import RealTime
from blastyard.testing.plain_wire import Access, PlainWire


def _parser() -> argparse.ArgumentParser:
    name = "python -m blastyard.testing.foreign"
    parser = argparse.ArgumentParser(prog=name, description=__doc__)
    add = parser.add_argument
    add("--kubeconfig", type=Path, required=True, help="as JSON, as the test control plane has it")
    add("--namespace", default="", help="instead of the kubeconfig's")
    add("--kind", choices=sorted(KINDS), default="dashboard")
    add("--source", default="", help="beginning of its holder names (the kind's name)")
    add("--searches", type=int, default=1, metavar="N")
    add("--seed", type=int, default=0)
    add("--scale", type=float, default=1.0, help="factor on its own delays and its searches' lives")
    add("--clock-error", type=float, default=0.0, metavar="S", help="its clock is S seconds ahead")
    add("--ceiling", type=int, default=3)
    add("--grace", type=float, default=300.0, metavar="S", help="until a lone finalizer is none")
    add("--lease-seconds", type=int, default=900, metavar="S")
    add("--skew", type=float, default=30.0, metavar="S", help="added before a Lease has expired")
    add("--life", type=float, nargs=2, default=(20.0, 120.0), metavar=("MIN", "MAX"))
    add("--merge", type=float, nargs=2, default=(1.0, 60.0), metavar=("MIN", "MAX"))
    add("--arrival", type=float, default=0.0, metavar="S", help="between two searches")
    add("--patience", type=float, metavar="S", help="gives up after so long (never)")
    add("--cancel-every", type=int, default=0, metavar="N", help="cancel every N-th search")
    add("--blast-jobs", type=int, default=2, metavar="N", help="Jobs of each search")
    return parser


def _setup(options: argparse.Namespace, namespace: str) -> Setup:
    return Setup(
        source=options.source or options.kind,
        namespace=namespace,
        kind=KINDS[options.kind],
        searches=options.searches,
        seed=options.seed,
        clock_error=options.clock_error,
        blast_jobs=options.blast_jobs,
        cancel_every=options.cancel_every,
        pace=Pace(
            scale=options.scale,
            life=tuple(options.life),
            merge=tuple(options.merge),
            arrival=options.arrival,
            patience=options.patience,
        ),
        rules=Rules(options.ceiling, options.grace, options.lease_seconds, options.skew),
    )


def _print(deed: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(deed) + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    options = _parser().parse_args(arguments)
    access = Access.read(options.kubeconfig)
    setup = _setup(options, options.namespace or access.namespace)
    wire = PlainWire(access, f"foreign-{setup.source}")
    try:
        ForeignSubmitter(setup, wire, RealTime(), _print).run()
    finally:
        wire.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
