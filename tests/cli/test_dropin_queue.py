"""Drop-in commands share the machine's queue, and a dead one is in nobody's way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import termios
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from dropin_stage import PATIENCE_SECONDS, Stage, ended

from blastyard.domain.search import DatabaseState
from blastyard.engine.guarded import Command, GuardedCommand
from blastyard.engine.process import MARK
from blastyard.store.sql import SqlSearchStore
from blastyard.testing import sample

ADA, BOB, GROUP = 64001, 64002, 64010
"""Numbers nobody has."""


@pytest.fixture
def stage(home: Path, environment: dict[str, str], tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, environment)
    yield made
    made.close()


def test_four_at_once_under_a_ceiling_of_one_never_overlap(stage: Stage) -> None:
    commands = [stage.start() for _ in range(4)]

    fences = []
    for remaining in (3, 2, 1, 0):
        actor = stage.begun()
        ledger = stage.when(lambda seen, left=remaining: len(seen.tickets) == left)  # type: ignore[misc]
        assert len(ledger.holds) == 1
        fences += [hold.fence for hold in ledger.holds.values()]
        stage.finish(actor)

    assert [ended(command)[0] for command in commands] == [0, 0, 0, 0]
    assert sorted(set(fences)) == fences
    assert len(fences) == 4


def test_as_many_run_at_once_as_the_ceiling_allows(stage: Stage) -> None:
    commands = [stage.start(ceiling=2) for _ in range(3)]
    actors = [stage.begun(), stage.begun()]
    ledger = stage.when(lambda seen: len(seen.tickets) == 1)
    assert len(ledger.holds) == 2

    stage.finish(actors[0])
    stage.finish(stage.begun())
    stage.finish(actors[1])
    assert [ended(command)[0] for command in commands] == [0, 0, 0]


def test_nothing_stays_in_the_ledger_after_the_end(stage: Stage) -> None:
    command = stage.start()
    stage.finish(stage.begun(), "3")

    assert ended(command)[0] == 3
    ledger = stage.when(lambda _: True)
    assert (ledger.holds, ledger.tickets) == ({}, {})
    with stage.gate() as opened:
        assert opened.gate.submitters() == {}


def test_killing_a_running_one_ends_blast_and_frees_the_slot(stage: Stage) -> None:
    first = stage.start()
    actor = stage.begun()
    second = stage.start()
    stage.when(lambda seen: len(seen.tickets) == 1)

    first.kill()

    assert actor.wait_gone(PATIENCE_SECONDS)
    stage.finish(stage.begun())
    assert ended(second)[0] == 0


def test_killing_a_waiting_one_lets_the_next_by(stage: Stage) -> None:
    first = stage.start()
    actor = stage.begun()
    second = stage.start()
    stage.when(lambda seen: len(seen.tickets) == 1)
    third = stage.start()
    stage.when(lambda seen: len(seen.tickets) == 2)

    second.kill()
    second.wait()
    stage.finish(actor)

    assert ended(first)[0] == 0
    stage.finish(stage.begun())
    assert ended(third)[0] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_blast_first_and_is_then_died_of(
    stage: Stage, number: signal.Signals
) -> None:
    command = stage.start()
    actor = stage.begun()

    command.send_signal(number)

    assert ended(command) == (-number, "", "")
    assert not actor.is_alive()
    assert stage.when(lambda _: True).holds == {}


def test_a_waiting_one_leaves_the_queue_at_ctrl_c(stage: Stage) -> None:
    first = stage.start()
    actor = stage.begun()
    second = stage.start()
    stage.when(lambda seen: len(seen.tickets) == 1)

    second.send_signal(signal.SIGINT)

    assert ended(second) == (-signal.SIGINT, "", "")
    assert stage.when(lambda _: True).tickets == {}
    stage.finish(actor)
    assert ended(first)[0] == 0


def test_a_signal_that_the_caller_ignores_stays_ignored(stage: Stage) -> None:
    command = stage.start(prefix=("nohup",))
    actor = stage.begun()

    command.send_signal(signal.SIGHUP)
    stage.finish(actor)

    assert ended(command)[0] == 0


@pytest.mark.parametrize("name", ["SEGV", "KILL", "PIPE"])
def test_death_by_a_signal_is_passed_on_as_such(stage: Stage, name: str) -> None:
    command = stage.start()
    stage.finish(stage.begun(), name)

    assert ended(command)[0] == -signal.Signals[f"SIG{name}"]


def test_wrong_arguments_do_not_wait_for_a_slot(stage: Stage) -> None:
    first = stage.start()
    actor = stage.begun()

    second = stage.start("-query", os.devnull, "-db", "any", "-wrong")

    assert ended(second) == (1, "", 'Error: Unknown argument: "wrong"\n')
    stage.finish(actor)
    assert ended(first)[0] == 0


def test_a_wait_that_takes_longer_than_was_set_ends_with_its_reason(stage: Stage) -> None:
    first = stage.start()
    actor = stage.begun()
    stage.environment["BLAST_CAPACITY_WAIT_MAX_SECONDS"] = "1"

    code, out, err = ended(stage.start())

    assert (code, out) == (5, "")
    assert "did not get its turn: 1 running of at most 1" in err
    stage.finish(actor)
    assert ended(first)[0] == 0


def test_somebody_at_a_terminal_is_told_why_it_waits_and_nobody_else(stage: Stage) -> None:
    first = stage.start()
    actor = stage.begun()
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    second = stage.start(stderr=theirs)
    os.close(theirs)

    said = b""
    while b"s: position 1, 1 running of at most 1" not in said:
        said += os.read(ours, 4096)
    stage.finish(actor)
    stage.finish(stage.begun())

    assert ended(first) == (0, f"played -query {os.devnull} -db any\n", "")
    assert ended(second)[0] == 0
    said += os.read(ours, 4096)
    assert said.endswith(b"\r\x1b[K")
    os.close(ours)


def test_a_database_that_is_still_being_copied_is_waited_for(stage: Stage, home: Path) -> None:
    with closing(SqlSearchStore(home / "blastyard.db")) as store:
        copying = sample.database("nt")
        store.add_database(copying)
        ours, theirs = os.openpty()
        command = stage.start("-query", os.devnull, "-db", "nt", stderr=theirs)
        os.close(theirs)
        said = b""
        while b"the database nt is being copied" not in said:
            said += os.read(ours, 4096)

        store.update_database(replace(copying, state=DatabaseState.READY, path="/data/nt"))

    stage.finish(stage.begun())
    assert ended(command)[:2] == (0, f"played -query {os.devnull} -db /data/nt\n")
    os.close(ours)


def test_a_blastn_on_the_path_that_calls_blastyard_is_named(stage: Stage) -> None:
    with GuardedCommand.start(Command(("sleep", "100"), stage.environment)) as guarded:
        guardian = guarded.guardian
        stage.environment[MARK] = f"{guardian.pid}.{guardian.started}"
        code, _, err = ended(stage.start())
        guarded.end()
        guarded.wait()

    assert code == 1
    assert "was started by a command that blastyard itself had started" in err


def _as_account(account: int) -> tuple[str, ...]:
    """Reading is allowed everywhere, because the interpreter may lie in root's home."""
    return (
        *("setpriv", "--reuid", str(account), "--regid", str(GROUP), "--clear-groups"),
        *("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"),
        *("sh", "-c", 'umask 077; exec "$@"', "sh"),
    )


@pytest.fixture
def accounts(stage: Stage, home: Path, tmp_path: Path, missing: Callable[[str], NoReturn]) -> Stage:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        missing("the root account with setpriv")
    able = subprocess.run([*_as_account(ADA), "true"], check=False, capture_output=True)
    if able.returncode != 0:
        missing("the right to change accounts")
    for folder in tmp_path.parents[:2]:
        folder.chmod(0o755)
    tmp_path.chmod(0o777)
    os.chown(home, 0, GROUP)
    home.chmod(0o2770)
    return stage


def test_accounts_that_share_a_home_share_its_queue(accounts: Stage) -> None:
    first = accounts.start(prefix=_as_account(ADA))
    actor = accounts.begun()
    second = accounts.start(prefix=_as_account(BOB))
    ledger = accounts.when(lambda seen: len(seen.tickets) == 1)
    users = [ticket.user for ticket in ledger.tickets.values()]
    users += [hold.ticket.user for hold in ledger.holds.values()]
    assert users == [str(BOB), str(ADA)]

    accounts.finish(actor)
    accounts.finish(accounts.begun())

    assert ended(first) == (0, f"played -query {os.devnull} -db any\n", "")
    assert ended(second)[0] == 0


def test_the_slot_of_another_accounts_dead_command_is_freed(accounts: Stage) -> None:
    first = accounts.start(prefix=_as_account(ADA))
    actor = accounts.begun()
    second = accounts.start(prefix=_as_account(BOB))
    accounts.when(lambda seen: len(seen.tickets) == 1)

    first.kill()

    assert actor.wait_gone(PATIENCE_SECONDS)
    accounts.finish(accounts.begun())
    assert ended(second)[0] == 0
