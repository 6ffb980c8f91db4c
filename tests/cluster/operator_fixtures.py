"""Operators with a credential, and the namespace that they look after."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from kube_stage import Stage
from operator_stage import Operator
from people_stage import People
from waiting_stage import until

from blastyard.admission.kubernetes.documents import KubernetesDocumentStore
from blastyard.kube import rbac
from blastyard.kube.rights import check
from blastyard.testing.controlplane import ControlPlane

READ: Final = ("get", "list")


@pytest.fixture
def stage(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Stage]:
    made = Stage(control_plane, namespace, tmp_path)
    yield made
    made.close()


@pytest.fixture
def store(stage: Stage) -> KubernetesDocumentStore:
    """The documents, as an administrator has them."""
    return stage.store()


@pytest.fixture
def operator(stage: Stage, tmp_path: Path) -> Operator:
    """Somebody with exactly the Role."""
    token = stage.account()
    with People(stage.plane) as people:
        wire = people.with_token(token)
        until(lambda: all(each.allowed for each in check(wire, stage.namespace)))
    return with_token(stage, token, tmp_path)


def with_token(stage: Stage, token: str, folder: Path) -> Operator:
    path = stage.plane.write_kubeconfig(folder / "operator.kubeconfig", token, stage.namespace)
    return Operator.with_kubeconfig(path, folder)


def readers_rules(namespace: str) -> list[dict[str, Any]]:
    """The Role without everything that changes or watches something."""
    rules = [rbac.rule(each) for each in rbac.needed(namespace)]
    for rule in rules:
        rule["verbs"] = [verb for verb in rule["verbs"] if verb in READ]
    return [rule for rule in rules if rule["verbs"]]


@pytest.fixture
def reader(stage: Stage, tmp_path: Path) -> Operator:
    """Somebody who may only get and list."""
    token = stage.account(readers_rules(stage.namespace))
    made = with_token(stage, token, tmp_path)
    until(lambda: made("status").returncode == 0)
    return made


def names(stage: Stage, *resources: str) -> list[str]:
    """What there is in the namespace."""
    found = []
    for resource in resources:
        answer = stage.plane.admin.send("GET", resource.format(stage.namespace)).expect(200)
        found += [each["metadata"]["name"] for each in answer["items"]]
    return found


LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
LEDGERS: Final = "/api/v1/namespaces/{}/configmaps"
JOBS: Final = "/apis/batch/v1/namespaces/{}/jobs"


@pytest.fixture
def administrator(stage: Stage, tmp_path: Path) -> Operator:
    folder = tmp_path / "administrator"
    folder.mkdir()
    return with_token(stage, stage.plane.admin_token, folder)


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that end with the test."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()
