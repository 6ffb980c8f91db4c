"""``scripts/cluster`` as somebody at a shell uses it."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from blastyard.engine.process import Process

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "cluster"
NOT_UP = 3

# the first use on a machine builds Kubernetes
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell with a state directory of its own."""

    environment: dict[str, str]

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self.environment, cwd="/", capture_output=True, text=True, check=False
        )

    def cluster(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run(SCRIPT, *arguments)


@pytest.fixture
def shell(
    tester_environment: dict[str, str], tmp_path: Path, missing: Callable[[str], NoReturn]
) -> Iterator[Shell]:
    """Whatever was started in it is ended."""
    made = Shell({**tester_environment, "XDG_STATE_HOME": str(tmp_path / "state dir")})
    built = made.cluster("build")
    if built.returncode != 0 and "KUBEBUILDER_ASSETS" in built.stderr:
        missing("a Kubernetes API")
    assert built.returncode == 0, built.stderr
    yield made
    made.cluster("down")


def processes(status: str) -> dict[str, Process]:
    """Name to process, of the lines of ``status`` that have one."""
    found = {}
    for name, pid in re.findall(r"(?m)^(\S+) +pid (\d+) +\d+ MB$", status):
        process = Process.find(int(pid))
        assert process is not None
        found[name] = process
    return found


def test_from_up_to_down(shell: Shell) -> None:
    assert shell.cluster("status").stdout == "not up\n"
    up = shell.cluster("up")
    assert (up.returncode, up.stdout) == (0, ""), up.stderr
    url = re.findall(r"cluster: up at (https://127\.0\.0\.1:\d+) \(\d+\.\d s\)", up.stderr)
    again = shell.cluster("up")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")

    status = shell.cluster("status")
    running = processes(status.stdout)
    assert status.returncode == 0
    assert status.stdout.splitlines()[0].split() == ["url", *url]
    assert set(running) == {"keeper", "etcd", "kube-apiserver", "kube-controller-manager"}
    assert re.search(r"(?m)^in all +\d+ MB$", status.stdout)

    use = f'eval "$({SCRIPT} env)"; eval "$({SCRIPT} env)"; echo "$PATH"; kubectl cluster-info'
    path, *told = shell.run("sh", "-euc", use).stdout.splitlines()
    assert path.count("blastyard/cluster/bin") == 1
    assert url[0] in told[0]

    down = shell.cluster("down")
    assert (down.returncode, down.stderr) == (0, "cluster: down\n")
    assert not any(process.is_alive() for process in running.values())
    assert shell.cluster("status").returncode == NOT_UP
    left = Path(shell.environment["XDG_STATE_HOME"]) / "blastyard"
    assert [path.name for path in left.iterdir()] == ["cluster.lock"]
    assert shell.cluster("down").stderr == ""


def test_env_of_a_cluster_that_is_not_up_gives_the_shell_nothing_to_do(shell: Shell) -> None:
    env = shell.cluster("env")

    assert (env.returncode, env.stdout) == (NOT_UP, "")
    assert "start it with scripts/cluster up" in env.stderr


def test_all_brings_the_scheduler_and_every_controller(shell: Shell) -> None:
    assert shell.cluster("up", "--all").returncode == 0
    assert "kube-scheduler" in processes(shell.cluster("status").stdout)

    deploy = "kubectl create deployment some --image=localhost/none:1"
    wait = "kubectl wait deployment/some --for=jsonpath='{.status.unavailableReplicas}'=1"
    made = shell.run("sh", "-euc", f'eval "$({SCRIPT} env)"; {deploy}; {wait} --timeout=50s')
    assert made.returncode == 0, made.stderr
    placed = "kubectl wait pod --all --for=condition=PodScheduled=false --timeout=50s"
    pending = shell.run("sh", "-euc", f'eval "$({SCRIPT} env)"; {placed}')
    assert pending.returncode == 0, pending.stderr


def test_a_cluster_whose_server_died_is_started_anew(shell: Shell) -> None:
    assert shell.cluster("up").returncode == 0
    before = processes(shell.cluster("status").stdout)
    before["kube-apiserver"].send(signal.SIGKILL)
    assert before["kube-apiserver"].wait_gone(30)
    assert re.search(r"(?m)^kube-apiserver .* ended$", shell.cluster("status").stdout)

    up = shell.cluster("up")

    assert "kube-apiserver ended by itself; starting anew" in up.stderr
    assert not any(process.is_alive() for process in before.values())
    assert "kube-apiserver" in processes(shell.cluster("status").stdout)


def test_a_cluster_whose_keeper_was_killed_is_down(shell: Shell) -> None:
    assert shell.cluster("up").returncode == 0
    before = processes(shell.cluster("status").stdout)
    before["keeper"].send(signal.SIGKILL)

    assert all(process.wait_gone(30) for process in before.values())
    assert shell.cluster("status").returncode == NOT_UP
    assert shell.cluster("up").returncode == 0


def test_an_unknown_word_is_a_mistake_that_names_the_known_ones(shell: Shell) -> None:
    wrong = shell.cluster("start")

    assert wrong.returncode == 2
    assert all(f"'{word}'" in wrong.stderr for word in ("up", "status", "env", "down", "build"))
