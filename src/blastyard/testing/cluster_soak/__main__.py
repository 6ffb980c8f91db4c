"""Runs with real processes against a real API server: ``scripts/soak --processes 10``.

Each run is drawn from its seed, takes a minute or two, and is judged from its recording by an
independent checker. Ends with exit code 1 when something was found in any of them; the recordings
of those are kept.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from blastyard.admission.timing import Timings
from blastyard.domain.clock import SystemClock
from blastyard.testing.cluster_soak.plan import MODES, SHORT, Plan, Size, make
from blastyard.testing.cluster_soak.run import Outcome, run
from blastyard.testing.controlplane import ControlPlane


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    add = parser.add_argument
    add("--processes", type=int, default=1, metavar="M", help="how many runs")
    add("--seed", type=int, default=0, metavar="S", help="the first seed")
    add("--mode", choices=sorted(MODES), default="mixed", help="which faults there are")
    add("--seconds", type=float, default=60.0, metavar="S", help="how long faults come")
    add("--fault-every", type=float, default=7.0, metavar="S", help="mean time between faults")
    add("--workers", type=int, default=2, metavar="N", help="installations with a store")
    add("--searches", type=int, default=8, metavar="N", help="searches of each of them")
    add("--commands", type=int, default=6, metavar="N", help="`blastyard exec` commands")
    add("--foreign", type=int, default=4, metavar="N", help="searches of each foreign program")
    add("--real-timings", action="store_true", help="the protocol's own constants")
    add("--keep", action="store_true", help="keep clean recordings, too")
    add("--directory", type=Path, help="where recordings are written (a temporary folder)")
    add("--plan", action="store_true", help="print the plans, and run nothing")
    return parser


def _plan(options: argparse.Namespace, seed: int) -> Plan:
    size = Size(
        options.seconds,
        options.workers,
        options.searches,
        options.commands,
        options.foreign,
        options.fault_every,
    )
    return make(seed, options.mode, size, _takeover(options))


def _takeover(options: argparse.Namespace) -> float:
    return _timings(options).takeover.total_seconds()


def _timings(options: argparse.Namespace) -> Timings:
    return Timings() if options.real_timings else SHORT


def _terms(options: argparse.Namespace) -> str:
    timings = _timings(options)
    return " ".join(
        f"--{name} {getattr(timings, name).total_seconds():.0f}"
        for name in ("takeover", "lapse", "skew")
    )


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _told(seed: int, outcome: Outcome) -> str:
    faults = ", ".join(f"{count} {name}" for name, count in sorted(outcome.faults.items()))
    ends = ", ".join(f"{count} {name}" for name, count in sorted(outcome.ends.items()))
    lines = [
        f"seed {seed}: {'clean' if outcome.is_clean else 'VIOLATED'} in {outcome.seconds:.0f} s"
        f" (drained in {outcome.drain:.0f} s)",
        f"  faults: {faults or 'none'}; ends: {ends or 'none'}",
        f"  {outcome.verdict}",
        *(f"  left over: {line}" for line in outcome.leftovers),
    ]
    return "\n".join(lines)


def _add(total: Counter[str], outcome: Outcome) -> None:
    total.update(outcome.faults)
    for name, count in outcome.verdict.counts.items():
        if name == "most at once":
            total[name] = max(total[name], count)
        else:
            total[name] += count
    total["runs"] += 1
    total["violated"] += not outcome.is_clean
    total["seconds"] += round(outcome.seconds)


def _soak(options: argparse.Namespace, root: Path) -> int:
    total: Counter[str] = Counter()
    with ControlPlane.start(root / "control-plane") as plane:
        for seed in range(options.seed, options.seed + options.processes):
            folder = root / f"{options.mode}-{seed}"
            namespace = f"soak-{options.mode}-{seed}"
            outcome = run(
                _plan(options, seed),
                plane,
                folder,
                namespace=namespace,
                real_timings=options.real_timings,
            )
            _say(_told(seed, outcome))
            _add(total, outcome)
            if outcome.is_clean and not options.keep:
                shutil.rmtree(folder)
            elif not outcome.is_clean:
                _say(f"  kept: {folder}; judge it again, and see its story, with:")
                terms = f"--namespace {namespace} {_terms(options)}"
                _say(f"  .venv/bin/python -m blastyard.testing.recorded {folder} {terms}")
                _say(f"  .venv/bin/python -m blastyard.testing.cluster_soak.timeline {folder}")
    counts = ", ".join(f"{count} {name}" for name, count in sorted(total.items()))
    _say(f"{total['violated']} of {total['runs']} runs violated: {counts}")
    return 1 if total["violated"] else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    options = _parser().parse_args(arguments)
    if options.plan:
        for seed in range(options.seed, options.seed + options.processes):
            _say("\n".join(_plan(options, seed).described()))
        return 0
    root = options.directory or Path(tempfile.mkdtemp(prefix="blastyard-soak-"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # everybody is ended on the way out
    began = SystemClock().monotonic()
    code = _soak(options, root.absolute())
    _say(f"took {SystemClock().monotonic() - began:.0f} s")
    if not code and not options.keep and options.directory is None:
        shutil.rmtree(root, ignore_errors=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
