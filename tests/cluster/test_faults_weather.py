"""Credentials that are refused, and an API server that answers badly, late or not at all."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from guarded_stage import Stubborn, Submission
from lease_site_stage import LEASE, Site, site
from test_faults_holder import STAND_IN, Successor, execution, outcome
from waiting_stage import CLOCK, QUICK, until

from blastyard.domain.errors import CODES, Misconfigured, Unavailable
from blastyard.kube import rbac
from blastyard.kube.wire import Call
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.controlplane_request import MERGE_PATCH
from blastyard.testing.proxy_fault import (
    Delay,
    Fault,
    LostAnswer,
    LostRequest,
    Reset,
    Rule,
    Truncated,
    forbidden,
    html,
    too_many,
    unavailable,
)

__all__ = ["site"]

REFUSED: Final = 120
LEASE_LOST: Final = 122
UNAVAILABLE: Final = 123
MISUSED: Final = 125
PAGE: Final = 8
"""Exit code of what somebody has to be called for: the cluster, and not a search, is broken."""


def exec_with(site: Site, kubeconfig: Path | str, *options: str) -> tuple[int, str]:
    """`exec` of a command that must not run."""
    ran = site.folder / "ran"
    process = execution(
        site, "job-1", site.script(f": >{ran}"), *options, KUBECONFIG=str(kubeconfig)
    )
    code, said = outcome(process)
    assert not ran.exists()
    return code, said


# -- what no waiting mends -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "verb"),
    [("leases", "update"), ("leases", "create"), ("jobs", "list"), ("configmaps", "update")],
)
def test_a_missing_right_is_named_with_what_to_grant(site: Site, resource: str, verb: str) -> None:
    """Fault A12: verb, resource, namespace and rule; never shown as busy."""
    account = f"without-{verb}-{resource}"
    rules = [
        {**rule, "verbs": [each for each in rule["verbs"] if each != verb]}
        if resource in rule["resources"]
        else rule
        for rule in map(rbac.rule, rbac.needed(site.namespace))
    ]
    site.plane.create_account(site.namespace, account, rules)
    token = site.plane.token_for(site.namespace, account)
    path = site.plane.write_kubeconfig(site.folder / account, token, site.namespace)
    site.put_lease("")

    code, said = exec_with(site, path, "--wait", "20s")

    assert code == REFUSED
    for word in (verb, resource, site.namespace, '"verbs":', "gate install"):
        assert word in said
    assert "is submitting" not in said
    assert site.holder() == ""


def test_a_credential_that_is_not_accepted_is_said_to_be(site: Site) -> None:
    """Fault A12: 401."""
    path = site.plane.write_kubeconfig(site.folder / "wrong", "no-such-token", site.namespace)
    code, said = exec_with(site, path)
    assert (code, "does not accept this credential (401" in said) == (REFUSED, True)
    assert "log in again" in said


def test_a_namespace_that_is_not_there_is_said_to_be(site: Site) -> None:
    """Fault A12: not as a search that waits for ever. Whoever may do everything is told 404."""
    token = site.plane.admin_token
    path = site.plane.write_kubeconfig(site.folder / "elsewhere", token, "no-such-namespace")
    code, said = exec_with(site, path)
    assert (code, "no-such-namespace" in said) == (MISUSED, True)
    assert CODES["cluster_misconfigured"].exit_code == PAGE


def with_command(site: Site, program: str) -> Path:
    """A kubeconfig whose credential is given out by a program."""
    path = site.folder / "by-command"
    config = json.loads(site.kubeconfig.read_text())
    command = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", program],
        "interactiveMode": "Never",
    }
    for each in config["users"]:
        each["user"] = {"exec": command}
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path


def given_out(token: str, at: str) -> str:
    """A program that gives out a token that ends at that time."""
    said = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": token, "expirationTimestamp": at},
    }
    return f"print({json.dumps(json.dumps(said))})"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.exit('log in first')", "log in first"),
        (given_out("some", "2020-01-01T00:00:00Z"), "gave out a credential that ended at 2020"),
        ("print('no JSON')", "gave out no ExecCredential"),
    ],
)
def test_a_credential_command_that_fails_is_named(site: Site, program: str, said: str) -> None:
    """Fault A12: an expired login of a cloud."""
    code, words = exec_with(site, with_command(site, program))
    assert (code, said in words) == (MISUSED, True)


def test_a_credential_that_ended_early_is_asked_for_again(site: Site) -> None:
    """Fault A12: a 401 in spite of what the command said about its end."""
    count, later = site.folder / "count", "2999-01-01T00:00:00Z"
    program = (
        "import pathlib\n"
        f"asked = pathlib.Path({str(count)!r})\n"
        "first = not asked.exists()\n"
        "asked.touch()\n"
        f"if first:\n    {given_out('ended', later)}\nelse:\n    {given_out(site.token, later)}\n"
    )
    process = execution(site, "job-1", site.script(), KUBECONFIG=str(with_command(site, program)))
    assert outcome(process) == (0, "")


def test_a_right_taken_away_inside_gate_a_ends_the_command(site: Site) -> None:
    """Fault A12: it cannot renew, so it may not go on; what was made is told and left alone."""
    command = Stubborn(site)
    mine = site.installation()
    submission = Submission(mine, "job-1", command.script)
    running = command.begun()
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{site.namespace}/roles/blastyard"
    site.plane.admin.send("PATCH", path, {"rules": []}, kind=MERGE_PATCH).expect(200)

    gone_at = running.wait_gone()

    assert gone_at - site.acquired_at() < 2 * QUICK.takeover
    submission.fate()
    assert isinstance(submission.error, Misconfigured)
    assert submission.error.code == "cluster_forbidden"
    assert "leases" in submission.error.message
    assert site.made_by("job-1") == {"submit"}


def test_a_command_that_was_let_in_outlasts_a_server_that_has_not_read_its_roles(
    site: Site,
) -> None:
    """Fault A12: for seconds after its start an API server refuses everybody."""
    proxy = site.proxy()
    site.put_lease("peer-1", renewTime=timedelta(0), leaseDurationSeconds=900)
    process = execution(site, "job-1", site.script(), KUBECONFIG=str(site.through(proxy)))
    until(lambda: site.has_ledger() and "job-1" in site.ledger().tickets)
    refused = proxy.plan.add(Rule(forbidden(), "GET|PUT|POST", "/leases/|/configmaps/", times=4))
    site.put_lease("")

    assert outcome(process) == (0, "")
    assert refused.hits == 4


# -- what passes ---------------------------------------------------------------------------------

FAULTS: dict[str, Fault] = {
    "502 html": html(502),
    "500 html": html(500),
    "503": unavailable(),
    "429": too_many(1),
    "truncated": Truncated(keep=25),
    "cut short": Truncated(keep=25, honest=False),
    "reset": Reset(),
    "reset in the midst": Reset(after=20),
    "lost request": LostRequest(),
    "lost answer": LostAnswer(),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_answer_that_tells_nothing_admits_nobody(site: Site, fault: str) -> None:
    """Fault A13: `Unavailable`, soon; and when it is over, all is as it was."""
    proxy = site.proxy()
    mine = site.installation(kubeconfig=site.through(proxy))
    site.put_lease("peer-1", renewTime=timedelta(0), leaseDurationSeconds=900)
    assert "peer-1" in mine.refused("job-1")
    proxy.plan.add(Rule(FAULTS[fault], path="/leases/|/configmaps/|/jobs", times=None))
    began = CLOCK.monotonic()

    with pytest.raises(Unavailable) as caught:
        mine.gate.enter("job-1", 1)

    assert caught.value.code == "cluster_unavailable"
    assert CLOCK.monotonic() - began < 5
    proxy.plan.clear()
    assert "peer-1" in mine.refused("job-1")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_submission_goes_through_short_bad_weather(site: Site, fault: str) -> None:
    """Fault A13: each kind of request meets it once, from the first to the last."""
    proxy = site.proxy()
    mine = site.installation(kubeconfig=site.through(proxy))
    for verb in ("PUT", "POST", "DELETE"):
        proxy.plan.add(Rule(FAULTS[fault], verb))
    proxy.plan.add(Rule(FAULTS[fault], "GET", LEASE))
    proxy.plan.add(Rule(FAULTS[fault], "GET", r"/jobs\?.*limit"))

    submission = Submission(mine, "job-1", site.script())

    assert submission.fate() == "complete", submission.error
    assert site.holder() == ""
    assert site.made_by("job-1") == {"submit", "finalizer"}


def test_a_server_that_stalls_is_given_up_well_before_the_lease_is_lost(site: Site) -> None:
    """Fault A13: each attempt has its own time limit, whatever is kept open for how long."""
    proxy = site.proxy()
    mine = site.installation(kubeconfig=site.through(proxy))
    proxy.plan.add(Rule(Delay(), times=None))
    client = site.connection(site.through(proxy)).client
    began = CLOCK.monotonic()

    with pytest.raises(Unavailable, match="nothing came for 5 s"):
        client.get(*site.lease_address)

    assert CLOCK.monotonic() - began < 6
    assert Call("GET", "/").timeout == 5.0
    proxy.plan.clear()
    assert mine.inside("job-1").is_trusted


@pytest.mark.slow
def test_exec_says_that_the_cluster_is_not_there(site: Site) -> None:
    """Fault A13: an exit code of its own, after a bounded time."""
    proxy = site.proxy()
    where = site.through(proxy)
    proxy.cut()
    code, said = exec_with(site, where, "--wait", "1s")
    assert (code, "gave no answer" in said) == (UNAVAILABLE, True)


@pytest.fixture
def own_site(own_control_plane: ControlPlane, tmp_path: Path) -> Iterator[Site]:
    """A namespace of an API server that may be mistreated."""
    name = f"test-{secrets.token_hex(4)}"
    own_control_plane.create_namespace(name)
    made = Site(own_control_plane, name, tmp_path)
    yield made
    made.close()


def test_a_command_ends_while_the_api_server_stands_still(own_site: Site) -> None:
    """Faults A7 and A13: nobody can take over, and nobody can tell; so it ends by its own clock."""
    command = Stubborn(own_site)
    first = execution(own_site, "job-1", command.script)
    running = command.begun()
    successor = Successor(own_site)
    own_site.plane.pause_api()  # so nobody is inside before it is resumed
    try:
        running.wait_gone()
    finally:
        own_site.plane.resume_api()

    assert outcome(successor.process) == (0, "")
    assert outcome(first)[0] == LEASE_LOST
    assert own_site.made_by("job-1") == {"submit"}
    assert successor.markers("job-1") == STAND_IN


def test_a_waiting_command_outlives_a_restart_of_the_api_server(own_site: Site) -> None:
    """Fault A13: its place in the queue is kept, and its turn comes."""
    own_site.put_lease("peer-1", renewTime=timedelta(0), leaseDurationSeconds=900)
    process = execution(own_site, "job-1", own_site.script())
    until(lambda: own_site.has_ledger() and "job-1" in own_site.ledger().tickets)
    own_site.plane.restart_api()
    own_site.put_lease("")

    assert outcome(process) == (0, "")
