"""The submit command runs under its guardian, in a folder of its own, and its end is understood."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import BlastyardError, Misconfigured, Unavailable
from blastyard.engine.command import Command
from blastyard.engine.elastic_blast.command import SubmitCommand
from blastyard.engine.elastic_blast.configuration import Order, Template, results_of
from blastyard.engine.elastic_blast.environment import command_environment
from blastyard.engine.elastic_blast.execution import KEPT, Execution
from blastyard.engine.elastic_blast.folder import SubmitFolder
from blastyard.engine.elastic_blast.kubeconfig import own_kubeconfig
from blastyard.engine.elastic_blast.name import cluster_name
from blastyard.engine.elastic_blast.probe import Probe
from blastyard.engine.elastic_blast.runner import Prepared, Setup, SubmitRunner
from blastyard.engine.remote import Failed, NoAnswer, Outcome, Submitted
from blastyard.kube.config import Target
from blastyard.settings import caller_environment

CLOCK = SystemClock()
NAME = cluster_name("5b0c3a52-3a35-4f6e-8a1b-6c2b7d4d9f10", "1")
SOON = 30.0
ANSWER = '{"kind":"submit_result","decision":"accepted","correlation_id":"%s"}'


def execution(script: str, deadline: float | None = None, **more: Any) -> Execution:
    command = Command(("/bin/sh", "-c", script), {"PATH": "/usr/bin:/bin"}, **more)
    return Execution.start(command, deadline)


def ended(running: Execution) -> tuple[int, bytes]:
    with running:
        ending = running.wait(SOON)
        assert ending is not None
        return ending.shell_code, running.out()


# -- what a command says --------------------------------------------------------------------------


def test_of_a_talkative_command_the_end_is_kept() -> None:
    code, out = ended(execution("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last"))

    assert code == 0
    assert len(out) == KEPT
    assert out.endswith(b"x\nlast\n")


def test_standard_error_is_kept_apart_and_bounded() -> None:
    with execution("head -c 300000 /dev/zero >&2; echo cause >&2; echo out") as running:
        ending = running.wait(SOON)
        assert ending is not None
        assert running.out() == b"out\n"
    assert ending.stderr.endswith("cause\n")
    assert len(ending.stderr) == KEPT


def test_a_command_has_no_input_and_none_of_our_files(tmp_path: Path) -> None:
    kept = os.open(tmp_path / "ours", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(kept, True)

    _, out = ended(execution(f"cat; ls /proc/self/fd; test -e /proc/self/fd/{kept} && echo leak"))

    assert b"leak" not in out
    os.close(kept)


def test_at_its_deadline_a_command_ends_with_all_its_descendants(tmp_path: Path) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    running = execution(
        f"setsid sh -c 'trap \"\" TERM; echo $$ >{told}; while :; do sleep 60; done' & sleep 60"
    )
    pid = int(told.read_text())

    running.extend(CLOCK.monotonic())
    code, _ = ended(running)

    assert code == 128 + signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_descendant_that_keeps_the_output_open_does_not_outlive_the_command() -> None:
    code, out = ended(execution("setsid sleep 600 & echo said"))

    assert (code, out) == (0, b"said\n")


# -- the run --------------------------------------------------------------------------------------


@pytest.fixture
def target(tmp_path: Path) -> Target:
    (tmp_path / "ca.crt").write_text("authority")
    path = tmp_path / "kubeconfig"
    path.write_text(
        """
apiVersion: v1
kind: Config
current-context: other
clusters:
- {name: one, cluster: {server: "https://127.0.0.1:1", certificate-authority: ca.crt}}
- {name: two, cluster: {server: "https://127.0.0.1:2"}}
users:
- {name: ada, user: {token: secret, tokenFile: token}}
- {name: bob, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login}}}
contexts:
- {name: lab, context: {cluster: one, user: ada, namespace: elsewhere}}
- {name: other, context: {cluster: two, user: bob}}
"""
    )
    return made_target("lab", path)


def made_target(context: str, *files: Path) -> Target:
    endpoint = cast("Any", SimpleNamespace(url="https://10.96.0.1:443"))
    return Target(endpoint, "searches", context, files)


@pytest.fixture
def runner(target: Target) -> Callable[[str], SubmitRunner]:
    def made(command: str) -> SubmitRunner:
        setup = Setup(SubmitCommand.parse(command), Template(), target, caller_environment())
        now = lambda: datetime(2026, 12, 1, tzinfo=UTC)  # noqa: E731
        return SubmitRunner(setup, Probe(CLOCK.monotonic), now)

    return made


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    def written(text: str) -> str:
        path = tmp_path / "submit"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return f"{path} {{id}} {{cfg}}"

    return written


@pytest.fixture
def order(tmp_path: Path) -> Order:
    query = tmp_path / "query.fa"
    return Order(NAME, "blastn", "nt", (), "6", query, results_of(str(tmp_path / "r"), NAME))


def outcome_of(runner: SubmitRunner, prepared: Prepared) -> Outcome:
    with runner.start(prepared, CLOCK.monotonic() + SOON) as submission:
        submission.wait(SOON)
        found = submission.outcome()
        assert found is not None
        return found


def test_the_command_is_given_its_id_and_its_file(
    runner: Callable[[str], SubmitRunner],
    script: Callable[[str], str],
    order: Order,
    tmp_path: Path,
) -> None:
    at_work = runner(
        script(f'grep -q "^program = blastn" "$2" && echo \'{ANSWER % "%s"}\'|sed s/%s/$1/')
    )

    found = outcome_of(at_work, at_work.prepare(order, tmp_path / "attempt-1"))

    assert found == Submitted((NAME.id,), "accepted")


def test_the_command_has_a_home_a_kubeconfig_and_an_environment_of_its_own(
    runner: Callable[[str], SubmitRunner],
    script: Callable[[str], str],
    order: Order,
    tmp_path: Path,
    target: Target,
) -> None:
    before = target.kubeconfig[0].read_bytes()
    at_work = runner(
        script('env >env; pwd >here; cp "$KUBECONFIG" saw; echo rewritten >$HOME/.kube/config')
    )
    prepared = at_work.prepare(order, tmp_path / "attempt-1")

    assert outcome_of(at_work, prepared) == Submitted()

    work = tmp_path / "attempt-1" / "elastic-blast" / "work"
    said = dict(line.split("=", 1) for line in (work / "env").read_text().splitlines())
    assert said["HOME"] == str(work.parent / "home")
    assert said["BLASTYARD_SEARCH_ID"] == NAME.id
    assert said["BLAST_USAGE_REPORT"] == "false"
    assert (work / "here").read_text().strip() == str(work)
    assert json.loads((work / "saw").read_text())["current-context"] == "lab"
    assert target.kubeconfig[0].read_bytes() == before


def test_nobody_else_can_read_what_a_run_has(
    runner: Callable[[str], SubmitRunner], order: Order, tmp_path: Path
) -> None:
    prepared = runner("true {id} {cfg}").prepare(order, tmp_path / "attempt-1")

    for path in (prepared.folder.path, prepared.folder.configuration, prepared.folder.kubeconfig):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_how_the_command_ended_stays_for_processes_that_come_later(
    runner: Callable[[str], SubmitRunner],
    script: Callable[[str], str],
    order: Order,
    tmp_path: Path,
) -> None:
    """Fault R1."""
    at_work = runner(script("exit 6"))
    prepared = at_work.prepare(order, tmp_path / "attempt-1")
    assert prepared.folder.ending() is None

    found = outcome_of(at_work, prepared)

    assert isinstance(found, Failed)
    later = SubmitFolder.below(tmp_path / "attempt-1").ending()
    assert later is not None
    assert (later.exit_code, later.by_itself) == (6, True)
    with pytest.raises(Unavailable, match="made before"):
        at_work.prepare(order, tmp_path / "attempt-1")


def test_an_attempt_that_was_prepared_and_not_run_is_prepared_anew(
    runner: Callable[[str], SubmitRunner], order: Order, tmp_path: Path
) -> None:
    at_work = runner("true {id} {cfg}")
    first = at_work.prepare(order, tmp_path / "attempt-1")

    assert at_work.prepare(order, tmp_path / "attempt-1") == first


def test_a_turn_that_is_over_ends_the_command_and_is_no_answer(
    runner: Callable[[str], SubmitRunner],
    script: Callable[[str], str],
    order: Order,
    tmp_path: Path,
) -> None:
    at_work = runner(script("sleep 600"))
    prepared = at_work.prepare(order, tmp_path / "attempt-1")
    with at_work.start(prepared, None) as submission:
        assert submission.outcome() is None
        submission.extend(CLOCK.monotonic())
        submission.wait(SOON)
        found = submission.outcome()

    assert isinstance(found, NoAnswer)
    assert found.failure.code == "terminal_exec_unavailable"


def test_a_command_that_is_not_there_is_named_before_it_has_its_turn(
    runner: Callable[[str], SubmitRunner], order: Order, tmp_path: Path
) -> None:
    with pytest.raises(Misconfigured, match="no-such-program is not on the PATH"):
        runner("no-such-program {id} {cfg}").prepare(order, tmp_path / "attempt-1")


def test_a_command_that_vanished_since_is_named(
    runner: Callable[[str], SubmitRunner],
    script: Callable[[str], str],
    order: Order,
    tmp_path: Path,
) -> None:
    at_work = runner(script("true"))
    prepared = at_work.prepare(order, tmp_path / "attempt-1")
    (tmp_path / "submit").unlink()

    with pytest.raises(Misconfigured) as caught:
        at_work.start(prepared, None)

    assert caught.value.code == "dependency_missing"


def test_two_searches_share_no_path(
    runner: Callable[[str], SubmitRunner], order: Order, tmp_path: Path
) -> None:
    """Fault R12."""
    at_work = runner("true {id} {cfg}")
    other = cluster_name(NAME.search, "2")
    second = replace(order, name=other, results=results_of(str(tmp_path / "r"), other))
    paths = [
        set(at_work.prepare(each, tmp_path / f"attempt-{number}").argv[1:])
        for number, each in enumerate((order, second))
    ]

    assert paths[0] & paths[1] == set()


# -- the kubeconfig -------------------------------------------------------------------------------


def test_a_kubeconfig_has_one_context_with_the_namespace_that_is_meant(target: Target) -> None:
    said = msgspec.json.decode(own_kubeconfig(target))

    assert said["current-context"] == "lab"
    assert said["contexts"] == [
        {"name": "lab", "context": {"cluster": "lab", "user": "lab", "namespace": "searches"}}
    ]
    assert said["users"][0]["user"]["token"] == "secret"


def test_files_named_in_a_kubeconfig_are_found_from_elsewhere(target: Target) -> None:
    folder = target.kubeconfig[0].parent
    said = msgspec.json.decode(own_kubeconfig(target))
    other = msgspec.json.decode(own_kubeconfig(made_target("other", *target.kubeconfig)))

    assert said["clusters"][0]["cluster"]["certificate-authority"] == str(folder / "ca.crt")
    assert said["users"][0]["user"]["tokenFile"] == str(folder / "token")
    assert other["users"][0]["user"]["exec"]["command"] == str(folder / "login")


def test_of_several_files_the_first_counts(target: Target, tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text("users: [{name: ada, user: {token: another}}]\nclusters: null\n")

    said = msgspec.json.decode(own_kubeconfig(made_target("lab", first, *target.kubeconfig)))

    assert said["users"][0]["user"] == {"token": "another"}


def test_in_a_pod_its_own_account_is_written_out(tmp_path: Path) -> None:
    said = msgspec.json.decode(own_kubeconfig(made_target(""), tmp_path))

    assert said["clusters"][0]["cluster"]["server"] == "https://10.96.0.1:443"
    assert said["users"][0]["user"] == {"tokenFile": str(tmp_path / "token")}


@pytest.mark.parametrize("text", ["[]", "users: [", "contexts: []"])
def test_a_kubeconfig_that_has_changed_meanwhile_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)

    with pytest.raises(BlastyardError) as caught:
        own_kubeconfig(made_target("lab", path))

    assert caught.value.code == "cluster_misconfigured"


# -- the environment ------------------------------------------------------------------------------


@pytest.fixture
def caller(tmp_path: Path) -> Mapping[str, str]:
    (tmp_path / ".azure").mkdir()
    return {
        "HOME": str(tmp_path),
        "PATH": "/bin",
        "KUBECONFIG": "/theirs",
        "BLASTYARD_STORE_URL": "postgresql://u:secret@h/db",
        "ELB_RESULTS": "gs://all-in-one",
        "ELB_DISABLE_AUTO_SHUTDOWN": "1",
        "AWS_PROFILE": "lab",
        "SECRET_OF_SOMEBODY": "x",
        "https_proxy": "http://p",
    }


def test_the_command_is_told_what_it_needs_and_no_more(
    caller: Mapping[str, str], tmp_path: Path
) -> None:
    folder = SubmitFolder.below(tmp_path / "a")

    said = command_environment(caller, folder, NAME)

    assert said["KUBECONFIG"] == str(folder.kubeconfig)
    assert {"PATH", "AWS_PROFILE", "https_proxy", "ELB_DISABLE_AUTO_SHUTDOWN"} <= set(said)
    assert {"BLASTYARD_STORE_URL", "SECRET_OF_SOMEBODY"} & set(said) == set()


def test_one_location_for_all_results_is_not_passed_on(
    caller: Mapping[str, str], tmp_path: Path
) -> None:
    """Fault R12."""
    said = command_environment(caller, SubmitFolder.below(tmp_path / "a"), NAME)

    assert "ELB_RESULTS" not in said


def test_who_is_logged_in_at_a_cloud_is_found_from_the_new_home(
    caller: Mapping[str, str], tmp_path: Path
) -> None:
    said = command_environment(caller, SubmitFolder.below(tmp_path / "a"), NAME)

    assert said["AZURE_CONFIG_DIR"] == str(tmp_path / ".azure")
    assert "CLOUDSDK_CONFIG" not in said
