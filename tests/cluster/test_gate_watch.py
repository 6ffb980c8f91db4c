"""`gate watch` against a real API server: on a pipe, for programs, on a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess

from operator_fixtures import (
    operator,
    reader,
    stage,
    started,
    store,
)
from operator_stage import BLASTYARD, Operator, hold, ledger, write
from waiting_stage import PATIENCE

from blastyard.admission.kubernetes.documents import KubernetesDocumentStore
from blastyard.domain.clock import SystemClock

__all__ = ["operator", "reader", "stage", "started", "store"]


# -- watching --------------------------------------------------------------------------------------


def read_until(process: subprocess.Popen[str], part: str) -> list[str]:
    """The lines that a process prints, up to one that has ``part`` in it."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if part in line:
            return lines
    raise AssertionError(f"it ended: {lines} {process.communicate()[1]}")


def test_what_happens_is_told_line_by_line_until_ctrl_c(
    operator: Operator, store: KubernetesDocumentStore, started: list[subprocess.Popen[str]]
) -> None:
    write(store, ledger(holds={"search-1": hold(7)}))
    process = operator.start("watch")
    started.append(process)

    assert any("search-1" in line for line in read_until(process, "search-1"))
    operator("ceiling", "7")
    read_until(process, "ceiling 3 -> 7 by olga")
    write(store, b"{ broken by hand")
    write(store, ledger())
    read_until(process, "search-1 has no run slot any more")
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=PATIENCE)[1]

    assert process.returncode == 0
    assert "Traceback" not in said
    assert not operator.home.exists()


def test_every_change_is_one_document_on_one_line_for_programs(
    operator: Operator, store: KubernetesDocumentStore, started: list[subprocess.Popen[str]]
) -> None:
    write(store, ledger())
    process = operator.start("watch", "--json")
    started.append(process)

    first = json.loads(read_until(process, "{")[0])
    operator("ceiling", "7")
    second = json.loads(read_until(process, "{")[0])
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)

    assert (first["ceiling"], second["ceiling"]) == (3, 7)
    assert first.keys() == second.keys() == operator.json("status").keys()
    assert process.returncode == 0


def test_a_reader_without_the_right_to_watch_sees_changes_too(
    reader: Operator, store: KubernetesDocumentStore, started: list[subprocess.Popen[str]]
) -> None:
    write(store, ledger())
    process = reader.start("watch")
    started.append(process)

    read_until(process, "submit slot")
    write(store, ledger(holds={"search-1": hold(7)}))

    read_until(process, "search-1 of ada has a run slot (submitted, fence 7)")


def test_a_terminal_shows_all_of_it_in_place(
    operator: Operator, store: KubernetesDocumentStore
) -> None:
    write(store, ledger(holds={"search-1": hold(7)}))
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*BLASTYARD, "gate", "watch"],
        env={**operator.environment, "TERM": "xterm", "COLUMNS": "160", "LINES": "40"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        seen_on(ours, "search-1")
        operator("ceiling", "7")
        seen_on(ours, "7 (1 running, 0 waiting)")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours)


def seen_on(terminal: int, text: str) -> None:
    """Read what a terminal shows until ``text`` is there."""
    clock = SystemClock()
    latest = clock.monotonic() + PATIENCE
    shown = ""
    while text not in shown:
        assert clock.monotonic() < latest, shown[-2000:]
        if select.select([terminal], [], [], 1.0)[0]:
            shown += os.read(terminal, 65536).decode(errors="replace")
