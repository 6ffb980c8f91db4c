"""`gate` on one machine, where nothing foreign is seen: the same commands, as far as they apply."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_stage import PATIENCE, Commands

SUBMIT = ("submit", "-p", "blastn", "-d", "genomes", "-q", "query.fa")


@pytest.mark.parametrize("words", [("install",), ("check",), ("forget", "job-1")])
def test_what_is_for_a_cluster_says_so(empty: Commands, words: tuple[str, ...]) -> None:
    done = empty("gate", *words, "--json")

    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "request_invalid"
    assert "is for the cluster backend" in done.stderr
    assert "BLAST_COORD_BACKEND=k8s" in done.stderr


def test_a_start_is_estimated_from_the_searches_that_ended(blastyard: Commands) -> None:
    for _ in range(3):
        assert blastyard("search", *SUBMIT[1:], "-o", "-").returncode == 0
    blastyard("gate", "ceiling", "1")
    blastyard(*SUBMIT)

    shape = blastyard.json("gate", "status")

    assert shape["estimate"]["searches"] == 3
    assert "from 3 that ended lately" in blastyard("gate", "status").stdout


def test_a_sweep_says_when_there_is_nothing_to_do(blastyard: Commands) -> None:
    assert blastyard("gate", "sweep").stdout == "nothing had to be done\n"
    assert blastyard("gate", "sweep", "--rebuild", "--yes").returncode == 1


def test_a_ledger_that_cannot_be_read_is_begun_again(blastyard: Commands, home: Path) -> None:
    blastyard("gate", "ceiling", "2")
    with sqlite3.connect(home / "blastyard.db") as database:
        database.execute("UPDATE documents SET body = '{ broken' WHERE name = 'ledger'")
    database.close()

    broken = blastyard("gate", "status")
    rebuilt = blastyard("gate", "sweep", "--rebuild", "--yes")

    assert broken.returncode == 10
    assert "gate sweep --rebuild` begins a new one" in broken.stderr
    assert (rebuilt.returncode, "a new ledger was begun" in rebuilt.stdout) == (0, True)
    assert blastyard.json("gate", "status")["ledger"] == "whole"


def test_what_happens_is_followed_until_ctrl_c(
    blastyard: Commands, background: Callable[..., subprocess.Popen[Any]]
) -> None:
    process = background(blastyard, "gate", "watch", "--json")
    assert process.stdout is not None

    first = json.loads(process.stdout.readline())
    blastyard("gate", "ceiling", "7")
    second = json.loads(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)

    assert (first["ceiling"], second["ceiling"], process.returncode) == (3, 7, 0)
