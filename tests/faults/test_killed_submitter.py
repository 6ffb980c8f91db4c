"""Kill -9 of the process that submits, at every step of a submission."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

from death_stage import Deaths
from machine_stage import Machine
from test_killed_worker import require_clean, require_good_end, tell_all

from blastyard.store.port import Filter
from blastyard.testing.checkpoint import Point, Strike, recorded

NewMachine = Callable[..., Machine]
KEY = "pipeline-step-7"


def submission(machine: Machine, record: Path) -> list[Point]:
    """All that a process passes which submits one search and leaves it to a service."""
    process = machine.installation.start("command", works=False, record=str(record)).ready()
    before = recorded(record) if record.exists() else []
    process.submit(machine.request(key=KEY))
    after = recorded(record)
    process.end()
    return after[len(before) :]


def killed_at(new_machine: NewMachine, point: Point) -> bool:
    machine = new_machine()
    installation = machine.installation
    strike = Strike(point, signal.SIGKILL)
    doomed = installation.start("command", works=False, strike=strike).ready()
    doomed.ask_submit(machine.request(key=KEY))
    doomed.wait_gone()

    stored = installation.yard.store.list(Filter())
    assert len(stored) <= 1
    for search in stored:
        query = installation.yard.files.query(search.id).read_bytes()
        assert hashlib.sha256(query).hexdigest() == search.query.sha256
    again = machine.submit(key=KEY)
    assert again in [search.id for search in stored] or not stored
    heir = installation.start().ready()
    require_good_end(machine, [again])
    assert len(installation.yard.store.list(Filter())) == 1
    require_clean(machine, heir)
    return True


def test_a_submitter_killed_at_any_step_leaves_a_whole_search_or_none(
    new_machine: NewMachine, deaths: Deaths, tmp_path: Path
) -> None:
    """Faults R1 and R10: asked again with its key, it is the same search."""
    points = submission(new_machine(), tmp_path / "record")
    assert {point.name.split(":")[2] for point in points} >= {"add", "swap"}

    tell_all(deaths(points), lambda point: killed_at(new_machine, point))


def test_a_folder_whose_submitter_was_killed_before_its_search_was_stored_is_removed_a_day_later(
    new_machine: NewMachine,
) -> None:
    machine = new_machine()
    strike = Strike(Point("main:before:add:"), signal.SIGKILL)
    doomed = machine.installation.start("command", works=False, strike=strike).ready()
    doomed.ask_submit(machine.request())
    doomed.wait_gone()
    searches = machine.installation.yard.home.searches
    [left] = searches.iterdir()
    os.utime(left, (0, 0))

    search_id = machine.submit()
    heir = machine.installation.start().ready()
    require_good_end(machine, [search_id])
    machine.installation.until(lambda: not left.exists(), "a tidy data directory")
    require_clean(machine, heir)
    assert {path.name for path in searches.iterdir()} == {search_id}
