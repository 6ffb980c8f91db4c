"""docs/operations.md: the trial with three terminals goes as the guide says."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from operator_stage import BLASTYARD, Operator
from waiting_stage import PATIENCE, until

from blastyard.kube import rbac
from blastyard.testing.controlplane import ControlPlane

PAGE: Final = Path(__file__).parents[2] / "docs" / "operations.md"


class Terminals:
    """A folder with the guide's scripts, and a kubeconfig of an account with exactly the Role."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        self.folder = folder
        for name, text in scripts(namespace).items():
            path = folder / name
            path.write_text(text)
            path.chmod(0o755)
        rules = [rbac.rule(each) for each in rbac.needed(namespace)]
        status = {"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["get", "patch"]}
        plane.create_account(namespace, "blastyard", [*rules, status])
        token = plane.token_for(namespace, "blastyard")
        path = plane.write_kubeconfig(folder / "kubeconfig", token, namespace)
        self.operator = Operator.with_kubeconfig(path, folder)
        search = f"{plane.kubectl.parent}:{self.operator.environment['PATH']}"
        self.operator = self.operator.on(PATH=search)
        self._started: list[subprocess.Popen[str]] = []

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.folder,
            env=self.operator.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def exec(self, user: str, search: str) -> subprocess.Popen[str]:
        words = ["exec", "--user", user, "--search-id", search, "--", "./submit.sh", "{id}"]
        process = subprocess.Popen(
            [*BLASTYARD, *words],
            cwd=self.folder,
            env=self.operator.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


def scripts(namespace: str) -> dict[str, str]:
    """The scripts of the page by name, for this namespace instead of ``lab``."""
    blocks = re.findall(r"```sh\n(#!/bin/sh.*?)```", PAGE.read_text(), re.DOTALL)
    found = {}
    for block in blocks:
        [name] = re.findall(r"^# (\w+\.sh) ID$", block, re.MULTILINE)
        text = block.replace("-n lab", f"-n {namespace}").replace(
            "submit-lab", f"submit-{namespace}"
        )
        found[name] = text
    return found


@pytest.fixture
def terminals(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Terminals]:
    made = Terminals(control_plane, namespace, tmp_path)
    until(lambda: made.operator("check").returncode == 0)
    yield made
    made.close()


def test_two_of_ours_and_a_third_program_share_the_namespace_as_the_guide_says(
    terminals: Terminals,
) -> None:
    both = [terminals.exec("ada", "job-a"), terminals.exec("bob", "job-b")]
    for process in both:
        assert (process.wait(PATIENCE), process.communicate()[1]) == (0, "")

    third = terminals.run("./third.sh", "job-c")
    assert third.returncode == 0, third.stderr
    shape = terminals.operator.json("status")
    assert sorted(each["search"] for each in shape["running"]) == ["job-a", "job-b"]
    assert {each["marker"]["needed"] for each in shape["running"]} == {"companion"}
    assert [each["id"] for each in shape["foreign"]] == ["job-c"]

    waits = terminals.exec("ada", "job-d")
    until(lambda: len(terminals.operator.json("status")["waiting"]) == 1)
    [place] = terminals.operator.json("status")["waiting"]
    assert (place["search"], place["position"]) == ("job-d", 1)
    assert place["reason"] == "3 of at most 3 are running, 1 of them started by other programs"
    denied = terminals.run("./third.sh", "job-e")
    assert (denied.returncode, "full" in denied.stdout) == (75, True)

    ended = terminals.run("./finish.sh", "job-c")
    assert ended.returncode == 0, ended.stderr
    assert waits.wait(PATIENCE) == 0
    after = terminals.operator.json("status")
    assert sorted(each["search"] for each in after["running"]) == ["job-a", "job-b", "job-d"]
