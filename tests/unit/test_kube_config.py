"""Which cluster is meant is found, or refused in words that say what to correct."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kube_certificate import SOON, SOON_ENDS_AT
from lightkube.config.client_adapter import BearerAuth, BearerTokenFileAuth

from blastyard.domain.errors import Misconfigured
from blastyard.kube.config import Wanted, find
from blastyard.kube.credential import ExecAuth
from blastyard.kube.kubeconfig import read

NOW = datetime(2026, 12, 1, tzinfo=UTC)
CONTEXT = {"cluster": "c", "user": "u"}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config(**changes: Any) -> dict[str, Any]:
    """A kubeconfig that is right, but for the changes."""
    return {
        "current-context": "one",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
        "contexts": [{"name": "one", "context": CONTEXT}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    } | {name.replace("_", "-"): value for name, value in changes.items()}


def user(**entry: Any) -> dict[str, Any]:
    return {"users": [{"name": "u", "user": entry}]}


def cluster(**entry: Any) -> dict[str, Any]:
    return {"clusters": [{"name": "c", "cluster": {"server": "https://h", **entry}}]}


class Home:
    """A home directory, with files in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.environment: dict[str, str] = {}

    def write(self, name: str, document: Any) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(document if isinstance(document, bytes) else msgspec.yaml.encode(document))
        return file

    def find(self, now: datetime = NOW, **wanted: Any):
        account = self.path / "account"
        asked = Wanted(self.environment, self.path, service_account=account, **wanted)
        return find(asked, lambda: now)

    def refusal(self, now: datetime = NOW, **wanted: Any) -> str:
        with pytest.raises(Misconfigured) as caught:
            self.find(now, **wanted)
        assert caught.value.code == "cluster_misconfigured"
        assert caught.value.next_step
        return caught.value.message


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


# -- where it is looked for ----------------------------------------------------------------------


def test_the_file_that_is_named_comes_before_the_usual_one(home: Home) -> None:
    usual = home.write(".kube/config", config(**cluster(server="https://usual")))
    named = home.write("named", config(**cluster(server="https://named")))

    assert home.find().endpoint.url == "https://usual"
    assert home.find().kubeconfig == (usual,)
    assert home.find(kubeconfig=str(named)).endpoint.url == "https://named"


def test_a_kubeconfig_comes_before_the_pod_that_this_runs_in(home: Home) -> None:
    home.write("account/token", b"t")
    home.environment["KUBERNETES_SERVICE_HOST"] = "10.0.0.1"
    home.write(".kube/config", config())

    assert home.find().endpoint.url == "https://127.0.0.1:6443"


def test_in_a_pod_its_service_account_is_used(home: Home) -> None:
    home.write("account/token", b"t")
    home.write("account/ca.crt", SOON.encode())
    home.write("account/namespace", b"lab\n")
    home.environment |= {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "8443"}

    found = home.find()

    assert (found.endpoint.url, found.namespace) == ("https://[fd00::1]:8443", "lab")
    assert isinstance(found.endpoint.auth, BearerTokenFileAuth)
    assert (found.context, found.kubeconfig) == ("", ())
    assert home.find(namespace="other").namespace == "other"
    assert "context 'x' is asked for" in home.refusal(context="x")


def test_nothing_anywhere_is_said_with_all_places(home: Home) -> None:
    said = home.refusal()

    assert "KUBECONFIG is not set" in said
    assert str(home.path / ".kube/config") in said
    assert "no pod" in said


def test_a_named_file_that_is_missing_is_not_made_up_for_by_another(home: Home) -> None:
    home.write(".kube/config", config())

    assert str(home.path / "none") in home.refusal(kubeconfig=str(home.path / "none"))


def test_several_files_count_as_one_and_the_first_to_say_something_is_right(home: Home) -> None:
    one = home.write("a/one", {"contexts": config()["contexts"], "current-context": "one"})
    two = home.write("b/two", config(current_context="two", **user(tokenFile="secret/token")))
    three = home.write("c/three", config(**cluster(server="https://late")))
    none = home.path / "none"

    found = home.find(kubeconfig=f"{one}:{none}:{two}:{three}")

    assert (found.context, found.endpoint.url) == ("one", "https://127.0.0.1:6443")
    merged = read([one, two, three])
    assert merged.users["u"].token_file == str(home.path / "b/secret/token")


@pytest.mark.parametrize("text", [b"{", b"\xff\xfe\0", b"- 1\n- 2\n", b"contexts: 3\n", b"a: *b\n"])
def test_a_file_that_is_no_kubeconfig_is_named(home: Home, text: bytes) -> None:
    file = home.write("broken", text)

    assert f"{file} cannot be read" in home.refusal(kubeconfig=str(file))


def test_a_directory_in_its_place_is_named(home: Home) -> None:
    (home.path / ".kube/config").mkdir(parents=True)

    assert "cannot be read" in home.refusal()


def test_an_empty_file_has_no_context(home: Home) -> None:
    home.write(".kube/config", b"")

    assert "has no current context" in home.refusal()


# -- what it says --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"current_context": "x"}, "lacks the context, 'x'; there is: 'one'"),
        ({"clusters": None}, "lacks the cluster that its context 'one' has, 'c'; there is: none"),
        ({"users": []}, "lacks the user that its context 'one' has, 'u'"),
        (user(**{"as": "somebody"}), "acts as another"),
        (cluster(server="nowhere"), "no address"),
        (cluster(server="ftp://h"), "no address"),
        (cluster(server="https://h:port"), "https://h:port"),
        (cluster(**{"certificate-authority": "none"}), "cannot be used"),
        (cluster(**{"certificate-authority-data": encoded("x")}), "cannot be used"),
        (cluster(**{"certificate-authority-data": encoded(" \n")}), "one of them is empty"),
        (cluster(**{"certificate-authority": "/dev/null"}), "one of them is empty"),
        (cluster(**{"certificate-authority-data": "%%"}), "cannot be used"),
        (user(**{"client-certificate-data": encoded(SOON)}), "cannot be used"),
        (user(**{"auth-provider": {"name": "gcp"}}), "auth-provider not supported"),
        (
            user(exec={"apiVersion": "client.authentication.k8s.io/v2", "command": "x"}),
            "speaks client.authentication.k8s.io/v2",
        ),
    ],
)
def test_what_cannot_be_right_is_refused(home: Home, changes: Mapping[str, Any], said: str) -> None:
    home.write(".kube/config", config(**changes))

    assert said in home.refusal()


def test_a_context_that_is_asked_for_is_used_or_missed(home: Home) -> None:
    contexts = [{"name": name, "context": CONTEXT} for name in ("one", "two")]
    home.write(".kube/config", config(contexts=contexts))

    assert home.find(context="two").context == "two"
    assert "lacks the context, 'three'; there is: 'one', 'two'" in home.refusal(context="three")


@pytest.mark.parametrize(
    ("asked", "in_context", "found"),
    [("", "", "default"), ("", "lab", "lab"), ("lab", "", "lab"), ("lab", "lab", "lab")],
)
def test_the_namespace_is_that_of_the_setting_or_of_the_context(
    home: Home, asked: str, in_context: str, found: str
) -> None:
    context = {**CONTEXT, "namespace": in_context} if in_context else CONTEXT
    home.write(".kube/config", config(contexts=[{"name": "one", "context": context}]))

    assert home.find(namespace=asked).namespace == found


def test_a_context_of_another_namespace_is_refused_and_both_are_named(home: Home) -> None:
    context = {**CONTEXT, "namespace": "theirs"}
    home.write(".kube/config", config(contexts=[{"name": "one", "context": context}]))

    said = home.refusal(namespace="ours")

    assert "'ours'" in said
    assert "'theirs'" in said
    assert "context 'one'" in said


@pytest.mark.parametrize("name", ["Lab", "-lab", "lab-", "a.b", "a_b", "ä", "a" * 64, "a/b", " "])
def test_what_cannot_be_a_namespace_is_refused(home: Home, name: str) -> None:
    home.write(".kube/config", config())

    assert "cannot be the name of a namespace" in home.refusal(namespace=name)


# -- the credential ------------------------------------------------------------------------------


def test_an_expired_certificate_is_refused_with_its_end(home: Home) -> None:
    pair = {"client-certificate-data": encoded(SOON), "client-key-data": encoded("x")}
    home.write(".kube/config", config(**user(**pair)))

    said = home.refusal(SOON_ENDS_AT)

    assert "client certificate" in said
    assert "expired at 2036-11-27T17:55:44+00:00" in said
    assert "cannot be used" in home.refusal(SOON_ENDS_AT - timedelta(seconds=1))  # it has no key


def test_an_expired_token_is_refused_and_a_rotated_one_is_not_looked_at(home: Home) -> None:
    claims = base64.urlsafe_b64encode(b'{"exp": 1700000000}').decode().rstrip("=")
    home.write(".kube/config", config(**user(token=f"a.{claims}.c")))
    assert "the token of" in home.refusal()

    home.write(".kube/config", config(**user(token=f"a.{claims}.c", tokenFile="token")))
    assert isinstance(home.find().endpoint.auth, BearerTokenFileAuth)


def test_tokens_and_commands_become_what_signs_requests(home: Home) -> None:
    home.write(".kube/config", config())
    assert isinstance(home.find().endpoint.auth, BearerAuth)

    for version in ("v1", "v1beta1"):
        entry = {"apiVersion": f"client.authentication.k8s.io/{version}", "command": "x"}
        home.write(".kube/config", config(**user(exec=entry)))
        assert isinstance(home.find().endpoint.auth, ExecAuth)


def test_proxy_and_server_name_of_a_cluster_are_taken_over(home: Home) -> None:
    extra = {"proxy-url": "http://proxy:3128", "tls-server-name": "kube"}
    home.write(".kube/config", config(**cluster(**extra)))

    endpoint = home.find().endpoint

    assert (endpoint.proxy, endpoint.server_name) == ("http://proxy:3128", "kube")
