"""The words of the submit command, and whether the installed one can be used."""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import BlastyardError, Misconfigured, Unavailable
from blastyard.engine.command import Command
from blastyard.engine.elastic_blast.command import DEFAULT, SubmitCommand
from blastyard.engine.elastic_blast.execution import Execution
from blastyard.engine.elastic_blast.probe import Probe

VALUES = {"id": "the-id", "cfg": "/a b/search.ini", "context": "kind", "namespace": "lab"}
ABLE = "echo 'usage: elastic-blast submit [--cfg FILE] [--json] [--idempotency-key KEY]'"
UPSTREAM = "echo 'usage: elastic-blast submit [--cfg FILE] [--jsonish] [--dry-run]'"


def test_the_default_command_submits_under_a_chosen_id_and_answers_in_json() -> None:
    command = SubmitCommand.parse()

    assert command.is_default
    assert command.argv(VALUES) == (
        "elastic-blast", "submit", "--cfg", "/a b/search.ini", "--json",
        "--idempotency-key", "the-id",
    )  # fmt: skip


def test_any_command_with_an_id_and_a_configuration_will_do() -> None:
    command = SubmitCommand.parse(
        "my-submit -n {namespace} 'x={id}' --context={context} {cfg} {{}}"
    )

    assert not command.is_default
    assert command.argv(VALUES) == (
        "my-submit", "-n", "lab", "x=the-id", "--context=kind", "/a b/search.ini", "{}",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is empty"),
        ("submit {id}", "no {cfg}"),
        ("submit {cfg}", "no {id}"),
        ("submit {cfg} {id} {name}", "{name} is not known; known are {cfg}, {id}"),
        ("submit {cfg} {id} {}", "{} is not known"),
        ("submit {cfg} {id} {x", "a brace is alone"),
        ("submit '{cfg} {id}", "quotation mark"),
        ("{id} {cfg}", "its first word"),
    ],
)
def test_a_command_that_cannot_be_meant_is_refused_with_an_example(text: str, problem: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        SubmitCommand.parse(text)

    assert problem in caught.value.message
    assert DEFAULT in caught.value.next_step


@given(st.dictionaries(st.sampled_from(sorted(VALUES)), st.text(), min_size=4))
def test_a_value_stays_one_word_whatever_is_in_it(values: dict[str, str]) -> None:
    words = SubmitCommand.parse("s {id} {cfg} {context} {namespace}").argv(values)

    assert words == ("s", values["id"], values["cfg"], values["context"], values["namespace"])


# -- the installed command ---------------------------------------------------------------------


class Asking:
    """A probe, and how often it has run something."""

    def __init__(self) -> None:
        self.runs = 0
        self.probe = Probe(SystemClock().monotonic, self._start)

    def _start(self, command: Command, deadline: float | None) -> Execution:
        self.runs += 1
        return Execution.start(command, deadline)


@pytest.fixture
def install(tmp_path: Path) -> Callable[[str], Mapping[str, str]]:
    """Puts a script in the place of elastic-blast; the environment in which it is found."""

    def installed(script: str) -> Mapping[str, str]:
        path = tmp_path / "elastic-blast"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return {"PATH": f"{tmp_path}:/usr/bin:/bin"}

    return installed


def refusal(asking: Asking, environment: Mapping[str, str]) -> BlastyardError:
    with pytest.raises(BlastyardError) as caught:
        asking.probe.require("elastic-blast", environment)
    return caught.value


def test_a_command_is_asked_once_what_it_can(install: Callable[[str], Mapping[str, str]]) -> None:
    asking = Asking()
    environment = install(ABLE)

    for _ in range(3):
        asking.probe.require("elastic-blast", environment)

    assert asking.runs == 1


def test_an_upgraded_command_is_asked_again(install: Callable[[str], Mapping[str, str]]) -> None:
    asking = Asking()
    refusal(asking, install(UPSTREAM))

    asking.probe.require("elastic-blast", install(ABLE))

    assert asking.runs == 2


def test_the_command_of_pypi_is_refused_with_what_to_do(
    install: Callable[[str], Mapping[str, str]],
) -> None:
    error = refusal(Asking(), install(UPSTREAM))

    assert isinstance(error, Misconfigured)
    assert error.code == "dependency_missing"
    assert "no --json and no --idempotency-key" in error.message
    assert "BLASTYARD_SUBMIT_COMMAND" in error.next_step


@pytest.mark.parametrize("script", ["exit 3", "echo broken >&2; exit 1", "kill -9 $$"])
def test_a_command_that_does_not_say_is_no_answer_and_is_asked_again(
    install: Callable[[str], Mapping[str, str]], script: str
) -> None:
    asking = Asking()
    environment = install(script)

    errors = [refusal(asking, environment) for _ in range(2)]

    assert {error.code for error in errors} == {"terminal_exec_unavailable"}
    assert all(isinstance(error, Unavailable) for error in errors)
    assert asking.runs == 2


def test_a_missing_command_is_named(tmp_path: Path) -> None:
    error = refusal(Asking(), {"PATH": str(tmp_path)})

    assert error.code == "dependency_missing"
    assert str(tmp_path) in error.message


def test_a_command_that_cannot_be_run_is_no_passing_trouble(
    install: Callable[[str], Mapping[str, str]], tmp_path: Path
) -> None:
    environment = install(ABLE)
    (tmp_path / "elastic-blast").write_bytes(b"#!/nowhere/python\n")
    (tmp_path / "elastic-blast").chmod(0o755)

    assert refusal(Asking(), environment).code == "dependency_missing"
