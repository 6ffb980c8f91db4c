"""`gate` when more wait than the published queue shows."""

from __future__ import annotations

import json

from command_stage import Commands

from blastyard.admission.ticket import PUBLISHED_PER_SUBMITTER

SUBMIT = ("submit", "-p", "blastn", "-d", "genomes", "-q")


def test_whoever_waits_behind_the_published_queue_is_counted_and_told_so(
    blastyard: Commands,
) -> None:
    files = ["query.fa"] * (PUBLISHED_PER_SUBMITTER + 2)
    last = blastyard(*SUBMIT, *files).stdout.split()[-1]

    shape = blastyard.json("gate", "status")
    text = blastyard("gate", "status").stdout
    parked = blastyard("gate", "park", last, "--json")

    assert (len(shape["waiting"]), shape["behind"]) == (PUBLISHED_PER_SUBMITTER, 2)
    assert f"0 running, {PUBLISHED_PER_SUBMITTER + 2} waiting" in text
    assert "and 2 behind them, to follow as places fall free" in text
    assert (parked.returncode, json.loads(parked.stdout)["phase"]) == (0, "parked")
    assert blastyard.json("gate", "status")["behind"] == 1
