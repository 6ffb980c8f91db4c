"""The control plane that cluster tests stand on is a real one, and leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.controlplane_program import Layout
from blastyard.testing.controlplane_request import MERGE_PATCH, Requests
from blastyard.testing.controlplane_state import State

END_SECONDS = 30
OWNER = """
import sys
from pathlib import Path
from blastyard.testing.controlplane import ControlPlane
cluster = ControlPlane.start(Path(sys.argv[1]), controllers=False)
print("started", flush=True)
sys.stdin.read()
"""
CONTAINER = {"name": "main", "image": "localhost/none:1"}
TEMPLATE = {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}


def job(name: str, **spec: object) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": {"template": TEMPLATE, **spec}}


def jobs(namespace: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def kubectl(cluster: ControlPlane, *arguments: str) -> str:
    """What kubectl prints as administrator. It must succeed, within a minute."""
    command = [cluster.kubectl, f"--kubeconfig={cluster.kubeconfig}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_for(cluster: ControlPlane, namespace: str, what: str, condition: str) -> None:
    kubectl(cluster, "-n", namespace, "wait", what, f"--for={condition}", "--timeout=50s")


def put_map(cluster: ControlPlane, namespace: str, name: str, **more: Any) -> dict[str, Any]:
    document = {"metadata": {"name": name, **more}, "data": {"of": namespace}}
    return cluster.admin.send("POST", maps(namespace), document).expect(201)


def impatient(cluster: ControlPlane) -> Requests:
    return replace(cluster.admin, timeout=0.5)


@contextmanager
def owner(directory: Path) -> Iterator[tuple[subprocess.Popen[str], State]]:
    """A process that owns a control plane, killed at the end at the latest."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, directory],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
            state = State.read(Layout(directory).state)
            assert state is not None
            yield process, state
        finally:
            process.kill()


def all_gone(state: State) -> bool:
    processes = [state.keeper, *state.programs.values()]
    assert len(processes) >= 3
    return all(one.process.wait_gone(END_SECONDS) for one in processes)


# -- what tests may rely on ----------------------------------------------------------------------


def test_the_server_is_real_and_ready(control_plane: ControlPlane) -> None:
    assert kubectl(control_plane, "get", "--raw", "/readyz") == "ok"
    version = control_plane.admin.send("GET", "/version").expect(200)
    assert int(version["minor"].rstrip("+")) >= 34


def test_two_namespaces_know_nothing_of_each_other(
    control_plane: ControlPlane, namespace: str
) -> None:
    other = f"{namespace}-other"
    control_plane.create_namespace(other)
    put_map(control_plane, namespace, "mine")

    assert control_plane.admin.send("GET", f"{maps(other)}/mine").status == 404
    put_map(control_plane, other, "mine")
    control_plane.delete_namespace(other).expect(200, 202)

    wait_for(control_plane, "default", f"namespace/{other}", "delete")
    mine = control_plane.admin.send("GET", f"{maps(namespace)}/mine").expect(200)
    assert mine["data"] == {"of": namespace}


def test_an_account_can_do_what_its_role_says_and_nothing_else(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    allowed = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create"]}
    control_plane.create_account(namespace, "reader", [allowed])
    put_map(control_plane, namespace, "open")
    token = control_plane.token_for(namespace, "reader")
    reader = control_plane.requests(token)

    assert reader.send("GET", f"{maps(namespace)}/open").status == 200
    assert reader.send("POST", maps(namespace), {"metadata": {"name": "new"}}).status == 201
    assert reader.send("GET", maps(namespace)).status == 403
    assert reader.send("DELETE", f"{maps(namespace)}/open").status == 403
    assert reader.send("GET", f"{maps('default')}/open").status == 403
    assert reader.send("POST", jobs(namespace), job("no")).status == 403
    assert control_plane.requests("made-up").send("GET", f"{maps(namespace)}/open").status == 401

    path = control_plane.write_kubeconfig(tmp_path / "kubeconfig", token, namespace, "lab")
    command = [control_plane.kubectl, f"--kubeconfig={path}", "--context=lab", "get", "configmap"]
    one = subprocess.run([*command, "open"], capture_output=True, text=True, check=False)
    every = subprocess.run(command, capture_output=True, text=True, check=False)
    assert one.returncode == 0, one.stderr
    assert every.returncode == 1
    assert f'User "system:serviceaccount:{namespace}:reader" cannot list' in every.stderr
    assert path.stat().st_mode & 0o077 == 0


def test_the_controllers_that_searches_need_are_at_work(
    control_plane: ControlPlane, namespace: str
) -> None:
    kept = put_map(control_plane, namespace, "owner")["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": kept["uid"]}
    put_map(control_plane, namespace, "owned", ownerReferences=[reference])
    control_plane.admin.send("POST", jobs(namespace), job("pending")).expect(201)

    wait_for(control_plane, namespace, "job/pending", "jsonpath={.status.active}=1")
    control_plane.admin.send("DELETE", f"{maps(namespace)}/owner").expect(200)
    wait_for(control_plane, namespace, "configmap/owned", "delete")
    wait_for(control_plane, namespace, "configmap/kube-root-ca.crt", "create")


def test_a_job_without_pods_can_be_completed_by_hand_and_expires(
    control_plane: ControlPlane, namespace: str
) -> None:
    document = job("marker", managedBy="example.org/nobody", ttlSecondsAfterFinished=1)
    made = control_plane.admin.send("POST", jobs(namespace), document).expect(201)
    at = made["metadata"]["creationTimestamp"]
    ends = ("SuccessCriteriaMet", "Complete")
    status = {
        "startTime": at,
        "completionTime": at,
        "succeeded": 1,
        "active": 0,
        "ready": 0,
        "terminating": 0,
        "conditions": [{"type": end, "status": "True", "lastTransitionTime": at} for end in ends],
    }
    path = f"{jobs(namespace)}/marker/status"

    halfway = {**status, "conditions": status["conditions"][1:]}
    refused = control_plane.admin.send("PATCH", path, {"status": halfway}, kind=MERGE_PATCH)
    accepted = control_plane.admin.send("PATCH", path, {"status": status}, kind=MERGE_PATCH)

    assert refused.status == 422
    assert [one["type"] for one in accepted.expect(200)["status"]["conditions"]] == list(ends)
    wait_for(control_plane, namespace, "job/marker", "delete")


# -- an API server that fails --------------------------------------------------------------------


def test_a_paused_server_answers_nothing_until_it_goes_on(own_control_plane: ControlPlane) -> None:
    own_control_plane.pause_api()
    try:
        with pytest.raises(TimeoutError):
            impatient(own_control_plane).send("GET", "/readyz")
    finally:
        own_control_plane.resume_api()

    assert own_control_plane.admin.send("GET", "/readyz").status == 200


def test_a_stopped_server_refuses_connections_until_it_is_started(
    own_control_plane: ControlPlane,
) -> None:
    own_control_plane.stop_api()
    try:
        with pytest.raises(ConnectionRefusedError):
            own_control_plane.admin.send("GET", "/readyz")
    finally:
        own_control_plane.start_api()

    assert own_control_plane.admin.is_ready()


def test_a_restarted_server_keeps_address_data_and_tokens(own_control_plane: ControlPlane) -> None:
    own_control_plane.create_namespace("kept")
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    own_control_plane.create_account("kept", "reader", [rule])
    before = put_map(own_control_plane, "kept", "data")
    reader = own_control_plane.requests(own_control_plane.token_for("kept", "reader"))

    own_control_plane.restart_api()

    assert reader.send("GET", f"{maps('kept')}/data").expect(200) == before


# -- nothing is left behind ----------------------------------------------------------------------


@pytest.mark.usefixtures("control_plane_binaries")
def test_a_killed_owner_leaves_no_process_and_no_secret(tmp_path: Path) -> None:
    with owner(tmp_path / "cluster") as (process, state):
        process.kill()
        assert all_gone(state)

    left = {path.name for path in (tmp_path / "cluster").iterdir()}
    assert {name.rpartition(".")[2] for name in left} == {"log"}


@pytest.mark.usefixtures("control_plane_binaries")
def test_it_lives_until_its_last_owner_leaves(tmp_path: Path) -> None:
    with owner(tmp_path / "cluster") as (process, state):
        mine = ControlPlane.attach(tmp_path / "cluster")
        assert mine is not None
        process.kill()
        process.wait()
        mine.restart_api()  # by now the keeper has heard of the death
        now = State.read(Layout(mine.directory).state)
        mine.stop()

    assert now is not None
    assert now.keeper == state.keeper
    assert not any(one.process.is_alive() for one in now.programs.values())
    assert all_gone(now)
    assert ControlPlane.attach(tmp_path / "cluster") is None


@pytest.mark.usefixtures("control_plane_binaries")
def test_a_killed_keeper_takes_its_programs_along(tmp_path: Path) -> None:
    with owner(tmp_path / "cluster") as (_, state):
        state.keeper.process.send(signal.SIGKILL)
        assert all_gone(state)
