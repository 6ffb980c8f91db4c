"""Several processes on one data directory: one queue, one ceiling."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from command_stage import PATIENCE, Brake, Commands, Terminal, running

SEARCH = ("search", "-p", "blastn", "-d", "genomes", "-q", "query.fa")


def spans(commands: Commands, searches: list[str]) -> list[tuple[str, str]]:
    """When each search ran, from its events, in order."""
    found = []
    for search_id in searches:
        events = {
            each["state"]: each["at"] for each in commands.json("events", search_id)["events"]
        }
        found.append((events["running"], events["collecting"]))
    return sorted(found)


def test_two_searches_of_two_processes_share_the_ceiling(
    blastyard: Commands, background: Callable[..., Any]
) -> None:
    alone = blastyard.with_environment(BLAST_MAX_RUN_CONCURRENCY="1")
    processes = [background(alone, *SEARCH) for _ in range(3)]

    ended = [process.communicate(timeout=PATIENCE) for process in processes]

    assert [process.returncode for process in processes] == [0, 0, 0], ended
    searches = [each["id"] for each in alone.json("list")["searches"]]
    times = spans(alone, searches)
    assert len(times) == 3
    assert all(before[1] <= after[0] for before, after in pairwise(times))


def test_a_waiting_search_shows_its_place_the_reason_and_who_holds_the_slot(
    held: Commands,
    brake: Brake,
    background: Callable[..., Any],
    terminal: Callable[..., Terminal],
) -> None:
    alone = held.with_environment(BLAST_MAX_RUN_CONCURRENCY="1")
    first = background(alone, *SEARCH)
    holder = alone.only_search()
    alone.until(holder, running)

    screen = terminal(alone, *SEARCH, "-o", "hits.tsv")
    screen.until("waiting, place 1 · 1 of at most 1 are running · held by " + holder[:8])
    brake.release()

    assert screen.ended() == 0
    assert first.wait(PATIENCE) == 0
    assert (alone.folder / "hits.tsv").stat().st_size > 0


def test_a_search_is_handed_to_the_service_that_runs(
    blastyard: Commands, background: Callable[..., Any]
) -> None:
    service = background(blastyard, "serve", "--port", "0")
    assert b"is served at" in service.stdout.readline()

    done = blastyard(*SEARCH)
    submitted = blastyard("submit", "-p", "blastn", "-d", "genomes", "-q", "query.fa", "more.fa")
    waited = blastyard("wait", *submitted.stdout.split())

    assert done.returncode == 0
    assert done.stdout.startswith("query1\t")
    assert "serve of " in submitted.stderr
    assert "runs them" in submitted.stderr
    assert (waited.returncode, waited.stderr) == (0, "")


def test_a_second_service_is_told_where_the_first_one_is(
    blastyard: Commands, background: Callable[..., Any]
) -> None:
    service = background(blastyard, "serve", "--port", "0")
    address = service.stdout.readline().decode().split()[-1]

    again = blastyard.json("serve")

    assert again == {"address": address}
    assert service.poll() is None


def test_a_waiting_process_takes_on_what_a_dead_one_left_and_finishes_it(
    held: Commands, brake: Brake, background: Callable[..., Any]
) -> None:
    alone = held.with_environment(BLAST_MAX_RUN_CONCURRENCY="1")
    holder = background(alone, *SEARCH)
    alone.until(alone.only_search(), running)
    [orphan] = alone("submit", "-p", "blastn", "-d", "genomes", "-q", "more.fa").stdout.split()
    waiting = background(alone, *SEARCH)

    adopted = alone.until(orphan, lambda shape: shape["phase"] != "waiting_for_runner")
    brake.release()
    _, err = waiting.communicate(timeout=PATIENCE)

    assert adopted["state"] == "queued"
    assert (waiting.returncode, holder.wait(PATIENCE)) == (0, 0)
    assert f"also looking after search {orphan[:8]}" in err.decode()
    assert alone("wait", orphan).returncode == 0
