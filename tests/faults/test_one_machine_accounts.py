"""Several accounts on one home: who looks after whose searches when a process dies."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NoReturn

import pytest
from machine_stage import Machine
from test_killed_worker import require_good_end
from test_one_machine_ceiling import running, settled

from blastyard.domain.job import State
from blastyard.testing.installation import Nursery, YardProcess

ADA, BOB, GROUP = 64001, 64002, 64010
"""Numbers nobody has."""


def _as_account(account: int) -> tuple[str, ...]:
    """Reading is allowed everywhere, because the interpreter may lie in root's home."""
    return (
        *("setpriv", "--reuid", str(account), "--regid", str(GROUP), "--clear-groups"),
        *("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"),
        *("sh", "-c", 'umask 077; exec "$@"', "sh"),
    )


@pytest.fixture(scope="module")
def accounts(missing: Callable[[str], NoReturn]) -> Iterator[dict[int, Nursery]]:
    """Nurseries whose processes belong to Ada and to Bob."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        missing("the root account with setpriv")
    able = subprocess.run([*_as_account(ADA), "true"], check=False, capture_output=True)
    if able.returncode != 0:
        missing("the right to change accounts")
    with ExitStack() as stack:
        made = {account: Nursery(_as_account(account)) for account in (ADA, BOB)}
        for nursery in made.values():
            stack.callback(nursery.close)
        yield made


@pytest.fixture
def shared(new_machine: Callable[..., Machine]) -> Machine:
    """A machine whose home belongs to the group of both."""
    machine = new_machine(1, group=GROUP)
    machine.actors.hold()
    return machine


def start(shared: Machine, kind: str, nursery: Nursery) -> YardProcess:
    return shared.installation.start(kind, nursery, log=os.devnull).ready()


def test_a_dead_process_leaves_its_slot_to_anybody_and_its_search_to_a_service(
    shared: Machine, accounts: dict[int, Nursery]
) -> None:
    """Faults A11, B11 and R11."""
    adas = start(shared, "search", accounts[ADA])
    bobs = start(shared, "search", accounts[BOB])
    ran = adas.submit(shared.request(own=True, user="ada"))
    actor = shared.actors.begun()
    running(shared, 1)
    waited = adas.submit(shared.request(own=True, user="ada"))
    his = bobs.submit(shared.request(own=True, user="bob"))
    adas.kill()

    assert actor.wait_gone(20)
    shared.actors.let(shared.actors.begun())
    require_good_end(shared, [his])
    another = bobs.submit(shared.request(own=True, user="bob"))
    shared.actors.let(shared.actors.begun())
    require_good_end(shared, [another])
    settled(shared)
    store = shared.installation.yard.store
    for search_id in (ran, waited):
        search = store.get(search_id)
        assert (search.state, search.account) == (State.QUEUED, ADA)
        assert search.runner != bobs.name
    service = shared.installation.start().ready()
    for _ in range(2):
        shared.actors.let(shared.actors.begun())
    require_good_end(shared, [ran, waited])
    assert {store.get(search_id).runner for search_id in (ran, waited)} == {service.name}


def test_a_process_of_the_same_account_takes_on_what_a_dead_one_left(
    shared: Machine, accounts: dict[int, Nursery]
) -> None:
    """Fault R11."""
    first = start(shared, "search", accounts[ADA])
    left = first.submit(shared.request(own=True))
    shared.actors.begun()
    running(shared, 1)
    second = start(shared, "search", accounts[ADA])
    own = second.submit(shared.request(own=True))
    first.kill()
    for _ in range(2):
        shared.actors.let(shared.actors.begun())

    require_good_end(shared, [left, own])


def test_a_service_of_another_account_runs_what_a_dead_process_left(
    shared: Machine, accounts: dict[int, Nursery]
) -> None:
    """Fault R11: the service is rarely root's."""
    adas = start(shared, "search", accounts[ADA])
    left = adas.submit(shared.request(own=True))
    shared.actors.begun()
    running(shared, 1)
    adas.kill()
    shared.actors.wait_gone()
    shared.actors.let_all()
    start(shared, "serve", accounts[BOB])

    require_good_end(shared, [left])
