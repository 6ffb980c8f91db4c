"""Credentials that a command gives out: used while they are good, renewed when they are not."""

from __future__ import annotations

import json
import ssl
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from kube_certificate import SOON

from blastyard.domain.errors import Misconfigured
from blastyard.kube.credential import VERSIONS, ExecAuth, ExecCommand

NOW = datetime(2026, 12, 1, tzinfo=UTC)

PROGRAM = """
import json, os, pathlib, sys
calls = pathlib.Path(sys.argv[1])
calls.write_text(calls.read_text() + os.environ["KUBERNETES_EXEC_INFO"] + "\\n")
status = json.loads(sys.argv[2])
if "token" in status:
    status["token"] += str(len(calls.read_text().splitlines()))
print(json.dumps({"kind": "ExecCredential", "apiVersion": sys.argv[3], "status": status}))
"""


class Plugin:
    """A command, and how often it was run."""

    def __init__(self, folder: Path) -> None:
        self.now = NOW
        self._calls = folder / "calls"
        self._calls.write_text("")

    @property
    def told(self) -> list[dict[str, Any]]:
        """What it was told at each run."""
        return [json.loads(line) for line in self._calls.read_text().splitlines()]

    def auth(self, status: dict[str, Any], version: str = VERSIONS[0], **extra: Any) -> ExecAuth:
        words = (sys.executable, "-c", PROGRAM, str(self._calls), json.dumps(status), version)
        command = ExecCommand(VERSIONS[0] if version == "other" else version, words, {}, **extra)
        return ExecAuth(command, ssl.create_default_context(), lambda: self.now)

    def running(self, *words: str, hint: str = "") -> ExecAuth:
        command = ExecCommand(VERSIONS[0], words, {"PATH": "/usr/bin:/bin"}, hint)
        return ExecAuth(command, ssl.create_default_context(), lambda: self.now)


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def asked(auth: ExecAuth, *statuses: int) -> list[str]:
    """The credentials of one request that is answered with these statuses."""
    server = iter(statuses)
    seen: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers.get("Authorization", ""))
        return httpx2.Response(next(server))

    with httpx2.Client(transport=httpx2.MockTransport(answer), auth=auth) as client:
        client.get("http://kube/")
    return seen


def refusal(auth: ExecAuth) -> Misconfigured:
    with pytest.raises(Misconfigured) as caught:
        asked(auth, 200)
    assert caught.value.code == "cluster_misconfigured"
    return caught.value


@pytest.mark.parametrize("version", VERSIONS)
def test_a_token_is_fetched_once_and_used_for_all_requests(plugin: Plugin, version: str) -> None:
    auth = plugin.auth({"token": "t"}, version)

    assert [asked(auth, 200), asked(auth, 403)] == [["Bearer t1"], ["Bearer t1"]]
    assert plugin.told == [
        {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    ]


def test_a_token_that_is_not_accepted_is_renewed_once(plugin: Plugin) -> None:
    auth = plugin.auth({"token": "t"})

    assert asked(auth, 401, 200) == ["Bearer t1", "Bearer t2"]
    assert asked(auth, 200) == ["Bearer t2"]
    assert asked(auth, 401, 401) == ["Bearer t2", "Bearer t3"]


def test_a_token_is_renewed_when_it_ends(plugin: Plugin) -> None:
    ends = NOW + timedelta(minutes=5)
    auth = plugin.auth({"token": "t", "expirationTimestamp": ends.isoformat()})
    assert asked(auth, 200) == ["Bearer t1"]

    plugin.now = ends - timedelta(seconds=60)
    assert asked(auth, 200) == ["Bearer t1"]
    plugin.now = ends - timedelta(seconds=5)
    assert asked(auth, 200) == ["Bearer t2"]


def test_the_command_is_told_of_the_cluster_when_it_wants_to_know(plugin: Plugin) -> None:
    asked(plugin.auth({"token": "t"}, cluster={"server": "https://h"}), 200)

    assert plugin.told[0]["spec"]["cluster"] == {"server": "https://h"}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({}, "neither a token nor a certificate"),
        ({"token": ""}, None),
        ({"token": "t", "expirationTimestamp": "2020-01-01T00:00:00Z"}, "ended at 2020-01-01"),
        ({"token": "t", "expirationTimestamp": "soon"}, "no ExecCredential"),
        ({"clientCertificateData": SOON, "clientKeyData": "x"}, "cannot be used"),
    ],
)
def test_what_is_no_credential_is_refused(
    plugin: Plugin, status: dict[str, Any], said: str | None
) -> None:
    if said is None:  # the sample command numbers its tokens, so this one is none by itself
        assert asked(plugin.auth(status), 200) == ["Bearer 1"]
        return
    assert said in refusal(plugin.auth(status)).message


def test_an_answer_of_another_version_is_refused(plugin: Plugin) -> None:
    assert "answered in other" in refusal(plugin.auth({"token": "t"}, "other")).message


def test_a_command_that_is_missing_says_how_to_get_it(plugin: Plugin) -> None:
    error = refusal(plugin.running("no-such-command", hint="apt install no-such"))

    assert "'no-such-command'" in error.message
    assert "cannot be run: No such file" in error.message
    assert error.next_step == "apt install no-such"


def test_a_command_that_fails_is_quoted(plugin: Plugin) -> None:
    error = refusal(plugin.running("sh", "-c", "echo please log in >&2; exit 3"))

    assert "failed with 3: please log in" in error.message


def test_a_command_that_says_something_else_is_refused(plugin: Plugin) -> None:
    assert "no ExecCredential" in refusal(plugin.running("echo", "hello")).message
