"""What a crowded namespace, a killed process and a polling program cost, on a real cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from figure import BLASTYARD, Figure, Setting, median

from blastyard.admission.kubernetes.job_sight import JobSights
from blastyard.admission.kubernetes.jobs import KubernetesCensus
from blastyard.admission.kubernetes.pulse import Pulse
from blastyard.domain.clock import SystemClock
from blastyard.kube.client import Client
from blastyard.kube.config import Wanted, find
from blastyard.kube.http import HttpWire
from blastyard.kube.resource import JOBS
from blastyard.testing.controlplane import ControlPlane
from cluster import completed_status, follow, submitter_environment

THREADS = 8


def measure(setting: Setting) -> list[Figure]:
    """One control plane for all of it."""
    setting.root.mkdir(parents=True)
    with ControlPlane.start(setting.root / "plane") as plane:
        return [
            *_census(plane, setting),
            *_killed(plane, setting),
            *_polling(plane, setting),
        ]


def _client(plane: ControlPlane, setting: Setting, namespace: str) -> Client:
    plane.create_namespace(namespace)
    kubeconfig = setting.root / f"{namespace}.kubeconfig"
    plane.write_kubeconfig(kubeconfig, plane.admin_token, namespace)
    target = find(Wanted({}, setting.root, str(kubeconfig)), SystemClock().now)
    return Client(HttpWire(target.endpoint, time.monotonic), namespace, time.monotonic)


def _job(namespace: str, name: str, app: str, search: str) -> dict[str, Any]:
    labels = {"app": app, "elb-job-id": search}
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "localhost/x:1"}]}
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"suspend": True, "template": {"spec": pod}},
    }


def _census(plane: ControlPlane, setting: Setting) -> list[Figure]:
    finished, live = (300, 20) if setting.quick else (10_000, 200)
    client = _client(plane, setting, "crowded")

    def make(number: int) -> None:
        name = f"f-{number}"
        client.create(JOBS, _job("crowded", name, "finalizer", f"s-{number}"))
        if number >= live:
            client.patch(JOBS, name, {"status": completed_status()}, "status")

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(make, range(finished + live)))
    pulse = Pulse(client, time.monotonic)
    reader = KubernetesCensus(client, JobSights(lambda: None), lambda: False, pulse)
    spans = []
    for _ in range(setting.runs(9)):
        begun = time.monotonic()
        seen = len(reader.read().families)
        spans.append(time.monotonic() - begun)
        if seen != live:
            raise RuntimeError(f"{seen} of {live} seen")
    name = f"census, {finished:,} finished Jobs, {live} live"
    return [Figure(name, median(spans) * 1000, "ms", "< 300", len(spans))]


def _exec(environment: dict[str, str], *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(BLASTYARD), "exec", "--", *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _killed(plane: ControlPlane, setting: Setting) -> list[Figure]:
    """kill -9 of the holder of Gate A, and of a waiting process at the head of the queue."""
    environment = submitter_environment(plane, setting, "killed")
    marks = setting.root / "marks"
    spans = []
    for number in range(setting.runs(3)):
        inside, after = marks / f"inside-{number}", marks / f"after-{number}"
        marks.mkdir(exist_ok=True)
        holder = _exec(environment, "sh", "-c", f"touch {inside}; exec sleep 600")
        follow(inside.exists)
        follower = _exec(environment, "touch", str(after))
        time.sleep(2)
        holder.send_signal(signal.SIGKILL)
        begun = time.monotonic()
        follow(after.exists)
        spans.append(time.monotonic() - begun)
        holder.wait()
        follower.wait()
    inside_a = Figure("kill -9 inside Gate A to the next", median(spans), "s", "<= 45", len(spans))
    return [inside_a, _killed_waiting(environment, marks, setting)]


def _killed_waiting(environment: dict[str, str], marks: Path, setting: Setting) -> Figure:
    """kill -9 of the process at the head of the queue, just before the slot falls free."""
    spans = []
    for number in range(setting.runs(3)):
        inside, go, after = (marks / f"{word}-{number}" for word in ("in", "go", "next"))
        loop = f"touch {inside}; while [ ! -e {go} ]; do sleep 0.01; done"
        holder = _exec(environment, "sh", "-c", loop)
        follow(inside.exists)
        head = _exec(environment, "true")
        time.sleep(2)
        behind = _exec(environment, "touch", str(after))
        time.sleep(2)
        head.kill()
        head.wait()
        go.touch()
        holder.wait()
        begun = time.monotonic()
        follow(after.exists)
        spans.append(time.monotonic() - begun)
        behind.wait()
    name = "a killed waiting process delays the next"
    return Figure(name, median(spans), "s", "<= 1", len(spans))


def _polling(plane: ControlPlane, setting: Setting) -> list[Figure]:
    """The contrast: programs that ask every 30 to 40 s, without any queue."""
    plane.create_namespace("polling")
    kubeconfig = setting.root / "polling.kubeconfig"
    plane.write_kubeconfig(kubeconfig, plane.admin_token, "polling")
    count = 1 if setting.quick else 4
    words = [sys.executable, "-m", "blastyard.testing.foreign", "--kubeconfig", str(kubeconfig)]
    words += ["--namespace", "polling", "--kind", "dashboard", "--searches", str(count)]
    begun = time.monotonic()
    programs = [
        subprocess.Popen(
            [*words, "--source", f"dash{number}", "--seed", str(number)],
            stdout=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "HOME": str(setting.root)},
        )
        for number in range(3)
    ]
    lines = [json.loads(line) for each in programs for line in each.communicate()[0].splitlines()]
    took = time.monotonic() - begun
    submitted = sum(line.get("what") == "submitted" for line in lines)
    return [
        Figure("admissions, plain polling clients", submitted / took, "1/s", "contrast", submitted)
    ]
