"""A recording for people: ``python -m blastyard.testing.cluster_soak.timeline DIRECTORY``.

One line for each deed, and for each change of the submit Lease, the ledger's holds, and the Jobs;
``--from`` and ``--to`` choose seconds since the first line, ``--about`` lines with a text in them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from blastyard.testing.foreign.count import is_terminal
from blastyard.testing.recorded.deed import DELETED, GAP, Change, Deed, changes_of, deeds_of

Line = tuple[float, str]


def lines_of(recording: Path) -> list[Line]:
    """Time in seconds since 1970, and text."""
    return sorted([*_deeds(recording), *_changes(recording)])


def _deeds(recording: Path) -> Iterator[Line]:
    for deed in deeds_of(recording):
        yield deed.at, _told(deed)


def _told(deed: Deed) -> str:
    more = {name: text for name, text in deed.more.items() if name not in ("gate", "ids")}
    details = " ".join(f"{name}={text}" for name, text in more.items())
    return f"{deed.who:<18} {deed.what} {deed.search} {details}"


def _changes(recording: Path) -> Iterator[Line]:
    holds: dict[str, str] = {}
    for change in changes_of(recording):
        if change.what == GAP:
            yield change.at, f"{change.version:>6} GAP    {change.kind}"
        elif change.kind == "Lease" and change.name.startswith("elb-blast-submit-"):
            yield change.at, f"{change.version:>6} LEASE  {change.what} {_holder(change)}"
        elif change.kind == "ConfigMap" and change.name.startswith("elb-blast-ledger-"):
            after = _holds(change)
            for text in _differences(holds, after):
                yield change.at, f"{change.version:>6} LEDGER {text}"
            holds = after
        elif change.kind == "Job":
            yield change.at, f"{change.version:>6} JOB    {change.what} {_job(change)}"


def _holder(change: Change) -> str:
    spec = change.document.get("spec") or {}
    return f"holder={spec.get('holderIdentity') or '-'} renewed={str(spec.get('renewTime'))[14:23]}"


def _holds(change: Change) -> dict[str, str]:
    if change.what == DELETED:
        return {"(no ledger)": ""}
    ledger: dict[str, Any] = json.loads(change.document["data"]["ledger"])
    found = {name: _hold(hold) for name, hold in (ledger.get("holds") or {}).items()}
    found["(ledger)"] = f"ceiling {ledger['policy'].get('ceiling', 3)}"
    if ledger.get("restored") is not None:
        found["(ledger)"] += f" restored by {', '.join(ledger['restored']) or 'nobody yet'}"
    tickets = len(ledger.get("tickets") or {})
    return found | {"(tickets)": str(tickets)}


def _hold(hold: Mapping[str, Any]) -> str:
    words = [str(hold["state"]), f"fence {hold['fence'] % 100000}", f"attempt {hold['attempt']}"]
    words += [
        f"{name}={hold[name]}" for name in ("failed_at", "alias", "cancelled") if name in hold
    ]
    return " ".join(words)


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield f"{name}: {after.get(name, 'gone')}"


def _job(change: Change) -> str:
    labels = change.document["metadata"].get("labels") or {}
    end = " ended" if is_terminal(dict(change.document)) else ""
    marker = " (marker)" if "blastyard/marker" in labels else ""
    return f"{labels.get('app')} {labels.get('elb-job-id')} {change.name}{marker}{end}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--from", dest="first", type=float, default=0.0, metavar="S")
    parser.add_argument("--to", dest="last", type=float, default=1e9, metavar="S")
    parser.add_argument("--about", default="", metavar="TEXT")
    options = parser.parse_args(arguments)
    lines = lines_of(options.recording)
    began = lines[0][0] if lines else 0.0
    for at, text in lines:
        if options.first <= at - began <= options.last and options.about in text:
            sys.stdout.write(f"{at - began:8.3f} {at:.3f} {text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
