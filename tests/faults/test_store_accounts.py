"""Several accounts share one store when its directory lets them, and are told when it does not."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest

from blastyard.admission.port import LEDGER
from blastyard.admission.sql import SqliteDocumentStore
from blastyard.admission.wakeup import Wakeup
from blastyard.domain.errors import Unavailable
from blastyard.store.migrations import run, upgrade

ADA, BOB, GROUP = 64001, 64002, 64010
"""Numbers nobody has."""

SOON = 10.0
"""Seconds to wait for what must happen at once before the test fails."""

Step = Callable[[], object]


@pytest.fixture
def as_account(missing: Callable[[str], NoReturn]) -> Callable[..., str]:
    """``as_account(uid, step)`` runs a step in a child with that user id, and the group's."""
    if os.geteuid() != 0:
        missing("the root account")
    assert run  # what the child needs is imported: it may not read the interpreter's files

    def act(account: int, step: Step, group: int = GROUP, umask: int = 0o077) -> str:
        receiver, sender = os.pipe()
        child = os.fork()
        if child == 0:
            _act(account, group, umask, step, sender)
        os.close(sender)
        with open(receiver, encoding="utf-8") as pipe:  # noqa: PTH123
            said = pipe.read()
        os.waitpid(child, 0)
        return said

    return act


def _act(account: int, group: int, umask: int, step: Step, sender: int) -> NoReturn:
    try:
        os.umask(umask)
        os.setgroups([])
        os.setgid(group)
        os.setuid(account)
        said = str(step())
    except BaseException as error:
        said = f"{type(error).__name__}: {error} {getattr(error, 'next_step', '')}"
    os.write(sender, said.encode())
    os._exit(0)


def store_in(home: Path) -> SqliteDocumentStore:
    """A client as bootstrap makes it."""
    wakeup = Wakeup(home / "run")
    return SqliteDocumentStore(home / "blastyard.db", wakeup=wakeup, upgrade=upgrade)


def swap_in(home: Path) -> Callable[[], object]:
    """A step that adds one to the number in the ledger."""

    def step() -> object:
        with closing(store_in(home)) as store:
            found = store.read(LEDGER)
            done = store.swap(LEDGER, found.version, b"%d" % (int(found.body or 0) + 1))
            return None if done is None else (done.body or b"").decode()

    return step


def test_accounts_share_a_store_in_a_directory_of_their_group(
    home: Path, as_account: Callable[..., str]
) -> None:
    os.chown(home, 0, GROUP)
    home.chmod(0o2770)
    swap = swap_in(home)
    assert as_account(ADA, swap, group=ADA) != "1"
    assert as_account(ADA, swap) == "1"
    with closing(store_in(home)) as store:  # as root: -wal and -shm are there when Bob comes
        watch = store.watch()
        assert store.read(LEDGER).body == b"1"
        assert as_account(BOB, swap) == "2"
        assert watch.wait(SOON)
        watch.close()
    assert as_account(ADA, swap) == "3"

    for path in home.iterdir():
        kind, mode = path.stat(), stat.S_IMODE(path.stat().st_mode)
        assert kind.st_gid == GROUP
        assert mode == (0o2770 if path.is_dir() else 0o660), path


def test_a_watch_of_one_account_hears_another(home: Path, as_account: Callable[..., str]) -> None:
    os.chown(home, 0, GROUP)
    home.chmod(0o2770)
    store = store_in(home)
    watch = store.watch()
    assert as_account(BOB, swap_in(home)) == "1"

    assert watch.wait(SOON)
    watch.close()
    store.close()


def test_a_private_directory_has_private_files(home: Path, as_account: Callable[..., str]) -> None:
    os.chown(home, ADA, GROUP)
    assert as_account(ADA, swap_in(home), umask=0) == "1"

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()}

    assert modes["blastyard.db"] == 0o600


def test_an_account_without_the_right_is_told_whose_help_it_needs(
    home: Path, as_account: Callable[..., str]
) -> None:
    assert swap_in(home)() == "1"
    home.chmod(0o755)
    said = as_account(BOB, swap_in(home))

    assert said.startswith("Unavailable: The database")
    assert f"user id {BOB}" in said
    assert str(home) in said
    assert "chgrp" in said


def test_a_watch_in_a_forbidden_directory_is_unavailable_and_a_notice_is_silent(
    home: Path, as_account: Callable[..., str]
) -> None:
    wakeup = Wakeup(home / "run")
    wakeup.watch().close()

    assert as_account(BOB, wakeup.notify) == "None"
    assert as_account(BOB, wakeup.watch).startswith(Unavailable.__name__)
