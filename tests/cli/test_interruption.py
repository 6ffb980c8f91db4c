"""Ctrl-C, SIGTERM and kill -9: a search is detached from, taken up again, and never lost."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_stage import PATIENCE, Brake, Commands, Terminal, end, running

SEARCH = ("search", "-p", "blastn", "-d", "genomes", "-q", "query.fa")


def braked(brake: Brake) -> list[int]:
    """The processes that stand at the brake."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if f"{brake.folder}/blastn\0-db".encode() in command:
                found.append(int(entry.name))
    return found


def test_ctrl_c_puts_a_search_of_this_process_back_and_wait_returns_to_it(
    held: Commands, brake: Brake, terminal: Callable[..., Terminal]
) -> None:
    screen = terminal(held, *SEARCH, "-o", "hits.tsv")
    screen.until(" running ")
    search_id = held.only_search()
    assert braked(brake) != []

    screen.press_ctrl_c()

    assert screen.ended() == 9, screen.shown
    assert f"blastyard wait {search_id[:8]}" in screen.shown
    assert braked(brake) == []
    left = held.json("status", search_id)
    assert (left["state"], left["phase"]) == ("queued", "waiting_for_runner")
    assert held.json("gate", "status")["running"] == []
    brake.release()
    assert held("wait", search_id[:8]).returncode == 0
    assert held.json("status", search_id)["state"] == "completed"
    assert not (held.folder / "hits.tsv").exists()


def test_a_second_ctrl_c_changes_nothing(
    held: Commands, brake: Brake, terminal: Callable[..., Terminal]
) -> None:
    screen = terminal(held, *SEARCH)
    screen.until(" running ")
    search_id = held.only_search()

    screen.press_ctrl_c()
    screen.press_ctrl_c()

    assert screen.ended() == 9, screen.shown
    assert braked(brake) == []
    assert held.json("status", search_id)["state"] == "queued"
    brake.release()
    assert held("wait", search_id).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_ends_of_a_session_detach_in_the_same_way(
    number: signal.Signals, held: Commands, brake: Brake, background: Callable[..., Any]
) -> None:
    process = background(held, *SEARCH, "--json")
    search_id = held.only_search()
    held.until(search_id, running)

    code, out, err = end(process, number)

    assert code == 9
    assert '"code": "interrupted"' in out
    assert f"blastyard wait {search_id[:8]}" in err
    assert braked(brake) == []
    assert held.json("status", search_id)["state"] == "queued"


def test_ctrl_c_while_the_query_is_read_queues_nothing(
    blastyard: Commands, background: Callable[..., Any]
) -> None:
    os.mkfifo(blastyard.folder / "pipe")
    process = background(blastyard, "search", "-p", "blastn", "-d", "genomes", "-q", "pipe")
    with (blastyard.folder / "pipe").open("wb", buffering=0) as pipe:
        pipe.write(b">half\nACGT")

        code, _, err = end(process, signal.SIGINT)

    assert (code, "before the search was queued" in err) == (9, True)
    assert blastyard.json("list")["searches"] == []
    assert list((Path(blastyard.environment["BLASTYARD_HOME"]) / "searches").iterdir()) == []


def test_ctrl_c_between_the_files_of_a_submission_tells_which_were_queued(
    blastyard: Commands, background: Callable[..., Any]
) -> None:
    os.mkfifo(blastyard.folder / "pipe")
    files = ("query.fa", "pipe", "more.fa")
    process = background(
        blastyard, "submit", "-p", "blastn", "-d", "genomes", "-q", *files, "--json"
    )
    with (blastyard.folder / "pipe").open("wb", buffering=0) as pipe:
        pipe.write(b">half\nACGT")

        code, out, err = end(process, signal.SIGINT)

    answer = json.loads(out)
    assert (code, "pipe and the files after it were not queued" in err) == (9, True)
    assert [each["id"] for each in answer["searches"]] == [blastyard.only_search()]
    assert [each["file"] for each in answer["refused"]] == ["pipe"]


def test_a_killed_search_is_continued_by_wait(
    held: Commands, brake: Brake, background: Callable[..., Any]
) -> None:
    process = background(held, *SEARCH)
    search_id = held.only_search()
    held.until(search_id, running)

    process.kill()
    process.wait(PATIENCE)
    brake.release()
    done = held("wait", search_id)

    assert done.returncode == 0
    assert "it runs in this process now" in done.stderr
    states = [event["state"] for event in held.json("events", search_id)["events"]]
    assert states.count("completed") == 1
    assert states.count("running") == 2


def test_ctrl_c_leaves_a_search_of_the_service_running(
    held: Commands,
    brake: Brake,
    background: Callable[..., Any],
    terminal: Callable[..., Terminal],
) -> None:
    service = background(held, "serve", "--port", "0")
    assert b"is served at" in service.stdout.readline()
    screen = terminal(held, *SEARCH)
    screen.until(" running ")
    search_id = held.only_search()

    screen.press_ctrl_c()

    assert screen.ended() == 9, screen.shown
    assert "goes on" in screen.shown
    assert held.json("status", search_id)["state"] == "running"
    brake.release()
    assert held("wait", search_id).returncode == 0
    states = [event["state"] for event in held.json("events", search_id)["events"]]
    assert states.count("running") == 1


def test_a_search_whose_service_dies_goes_on_in_the_process_that_waits_for_it(
    held: Commands, brake: Brake, background: Callable[..., Any]
) -> None:
    service = background(held, "serve", "--port", "0")
    assert b"is served at" in service.stdout.readline()
    process = background(held, *SEARCH)
    search_id = held.only_search()
    held.until(search_id, running)

    service.kill()
    service.wait(PATIENCE)
    brake.release()
    out, err = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0, err
    assert out.startswith(b"query1\t")
    assert b"it runs in this process now" in err
