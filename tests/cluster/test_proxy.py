"""The fault-injecting proxy, in front of a real API server: each fault does what it says."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.proxy import FaultProxy
from blastyard.testing.proxy_fault import (
    Delay,
    HalfOpen,
    LostAnswer,
    LostRequest,
    Reset,
    Rule,
    Said,
    Truncated,
    html,
    too_many,
    unavailable,
)

BROKEN = (ConnectionError, http.client.HTTPException, ssl.SSLError, TimeoutError)


@pytest.fixture
def proxy(control_plane: ControlPlane) -> Iterator[FaultProxy]:
    with FaultProxy.before(control_plane) as running:
        yield running


class Client:
    """One connection through the proxy, kept between requests and never made anew by itself."""

    def __init__(self, proxy: FaultProxy, cluster: ControlPlane, timeout: float = 20.0) -> None:
        address = urlsplit(proxy.url)
        trust = ssl.create_default_context(cafile=str(cluster.ca_file))
        self.connection = http.client.HTTPSConnection(
            address.hostname, address.port, timeout=timeout, context=trust
        )
        self.connection.connect()
        self.connection.auto_open = 0
        self._headers = {
            "Authorization": f"Bearer {cluster.admin_token}",
            "User-Agent": "client-of-the-test/1",
        }

    def open(self, verb: str, path: str, document: object = None) -> http.client.HTTPResponse:
        body = None if document is None else json.dumps(document)
        headers = {**self._headers, "Content-Type": "application/json"}
        self.connection.request(verb, path, body, headers)
        return self.connection.getresponse()

    def ask(self, verb: str, path: str, document: object = None) -> tuple[int, bytes]:
        response = self.open(verb, path, document)
        return response.status, response.read()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()


@pytest.fixture
def client(proxy: FaultProxy, control_plane: ControlPlane) -> Iterator[Client]:
    with Client(proxy, control_plane) as connected:
        yield connected


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def named(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def is_there(cluster: ControlPlane, namespace: str, name: str) -> bool:
    return cluster.admin.finds(f"{maps(namespace)}/{name}")


def test_requests_pass_over_one_kept_connection_and_are_recorded(
    proxy: FaultProxy, client: Client, namespace: str
) -> None:
    assert client.ask("POST", maps(namespace), named("one"))[0] == 201
    status, body = client.ask("GET", maps(namespace) + "/one")
    assert (status, json.loads(body)["metadata"]["name"]) == (200, "one")
    assert client.ask("GET", maps(namespace) + "/two")[0] == 404
    seen = proxy.log.records(path=f"/namespaces/{namespace}/", client="client-of-the-test")
    assert [(record.verb, record.status) for record in seen] == [
        ("POST", 201),
        ("GET", 200),
        ("GET", 404),
    ]
    proxy.log.wait(3, path=f"/namespaces/{namespace}/")
    assert all(record.seconds and record.fault is None for record in seen)


def test_kubectl_works_through_a_written_kubeconfig(
    proxy: FaultProxy, control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    path = proxy.write_kubeconfig(tmp_path / "kubeconfig", control_plane.admin_token, namespace)
    command = [control_plane.kubectl, "--kubeconfig", path, "create", "configmap", "by-kubectl"]
    subprocess.run(
        command, check=True, capture_output=True, timeout=60, env={"HOME": str(tmp_path)}
    )
    assert is_there(control_plane, namespace, "by-kubectl")
    assert proxy.log.records("POST", namespace, "kubectl")


def test_a_lost_request_never_reaches_the_server(
    proxy: FaultProxy, control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    proxy.plan.add(Rule(LostRequest(), "POST"))
    with pytest.raises(BROKEN):
        client.ask("POST", maps(namespace), named("lost"))
    assert not is_there(control_plane, namespace, "lost")
    assert proxy.log.records("POST", namespace)[0].fault == LostRequest()


def test_a_lost_answer_comes_after_the_work_was_done(
    proxy: FaultProxy, control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    proxy.plan.add(Rule(LostAnswer(), "POST"))
    with pytest.raises(BROKEN):
        client.ask("POST", maps(namespace), named("done"))
    assert is_there(control_plane, namespace, "done")


def test_a_rule_acts_on_the_requests_it_counts_to(
    proxy: FaultProxy, client: Client, namespace: str
) -> None:
    rule = proxy.plan.add(Rule(unavailable(), "GET", "/configmaps$", skip=1, times=2))
    path = maps(namespace)
    assert [client.ask("GET", path)[0] for _ in range(4)] == [200, 503, 503, 200]
    assert client.ask("GET", path + "?limit=1")[0] == 200
    assert rule.hits == 2


def test_a_kept_request_lands_after_its_client_has_gone(
    proxy: FaultProxy, control_plane: ControlPlane, namespace: str
) -> None:
    rule = proxy.plan.add(Rule(Delay(), "POST"))
    with Client(proxy, control_plane, timeout=0.2) as client, pytest.raises(TimeoutError):
        client.ask("POST", maps(namespace), named("late"))
    rule.wait()
    assert not is_there(control_plane, namespace, "late")
    rule.release()
    proxy.log.wait(1, "POST", namespace)
    assert is_there(control_plane, namespace, "late")


def test_a_kept_answer_comes_when_it_is_released(
    proxy: FaultProxy, control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    rule = proxy.plan.add(Rule(Delay(answer=True), "POST"))
    answers: list[int] = []
    asking = threading.Thread(
        target=lambda: answers.append(client.ask("POST", maps(namespace), named("kept"))[0])
    )
    asking.start()
    rule.wait()
    while not is_there(control_plane, namespace, "kept"):
        assert asking.is_alive()
    assert answers == []
    rule.release()
    asking.join(20)
    assert answers == [201]


def test_a_delay_is_bounded(proxy: FaultProxy, client: Client, namespace: str) -> None:
    proxy.plan.add(Rule(Delay(at_most=0.05)))
    assert client.ask("GET", maps(namespace))[0] == 200
    proxy.log.wait(1, "GET", namespace)
    assert (proxy.log.records("GET", namespace)[0].seconds or 0.0) >= 0.05


def test_a_reset_comes_in_the_midst_of_a_body(
    proxy: FaultProxy, client: Client, namespace: str
) -> None:
    proxy.plan.add(Rule(Reset(after=20), "GET"))
    response = client.open("GET", maps(namespace))
    assert response.status == 200
    with pytest.raises(BROKEN):
        response.read()


@pytest.mark.parametrize(
    ("said", "is_json"),
    [
        (too_many(retry_after=7), True),
        (html(500), False),
        (html(502), False),
        (unavailable(), True),
    ],
    ids=["429", "500 html", "502 html", "503"],
)
def test_an_answer_of_its_own_keeps_the_server_out(
    proxy: FaultProxy, client: Client, namespace: str, said: Said, is_json: bool
) -> None:
    proxy.plan.add(Rule(said, "POST"))
    response = client.open("POST", maps(namespace), named("refused"))
    body = response.read()
    assert (response.status, response.getheader("Content-Type")) == (said.status, said.content_type)
    assert response.getheader("Retry-After") == ("7" if said.status == 429 else None)
    assert not is_json or json.loads(body)["code"] == said.status
    assert is_json or body.startswith(b"<html>")
    assert client.ask("GET", maps(namespace) + "/refused")[0] == 404
    assert client.ask("POST", maps(namespace), named("refused"))[0] == 201


def test_an_honestly_truncated_body_is_whole_by_its_length_and_broken_as_json(
    proxy: FaultProxy, client: Client, namespace: str
) -> None:
    proxy.plan.add(Rule(Truncated(keep=30), "GET"))
    status, body = client.ask("GET", maps(namespace))
    assert (status, len(body)) == (200, 30)
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        json.loads(body)
    assert client.ask("GET", maps(namespace))[0] == 200


def test_a_dishonestly_truncated_body_is_shorter_than_announced(
    proxy: FaultProxy, client: Client, namespace: str
) -> None:
    proxy.plan.add(Rule(Truncated(keep=30, honest=False), "GET"))
    with pytest.raises(http.client.IncompleteRead):
        client.ask("GET", maps(namespace))


def watch(client: Client, namespace: str) -> http.client.HTTPResponse:
    return client.open("GET", f"{maps(namespace)}?watch=true&timeoutSeconds=60")


def names(response: http.client.HTTPResponse, count: int) -> list[str]:
    events = [json.loads(response.readline()) for _ in range(count)]
    return [event["object"]["metadata"]["name"] for event in events]


def test_a_watch_passes_event_by_event(
    proxy: FaultProxy, control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    response = watch(client, namespace)
    for name in ("first", "second"):
        control_plane.admin.send("POST", maps(namespace), named(name)).expect(201)
        while names(response, 1) != [name]:  # kube-root-ca.crt comes some time too
            pass


def test_a_watch_that_its_client_leaves_is_left_at_the_server_too(
    proxy: FaultProxy, control_plane: ControlPlane, namespace: str
) -> None:
    with Client(proxy, control_plane) as client:
        watch(client, namespace)
    proxy.log.wait(1, "GET", "watch=true")


def test_a_half_open_watch_says_nothing_more_and_stays(
    proxy: FaultProxy, control_plane: ControlPlane, namespace: str
) -> None:
    for name in ("a", "b", "c"):
        control_plane.admin.send("POST", maps(namespace), named(name)).expect(201)
    rule = proxy.plan.add(Rule(HalfOpen(after=2), "GET", "watch=true"))
    with Client(proxy, control_plane, timeout=1.0) as client:
        response = watch(client, namespace)
        names(response, 2)
        with pytest.raises(TimeoutError):
            response.readline()
    with Client(proxy, control_plane) as client:
        assert names(watch(client, namespace), 3)
    rule.release()


def test_a_half_open_watch_ends_when_it_is_released(
    proxy: FaultProxy, client: Client, namespace: str
) -> None:
    rule = proxy.plan.add(Rule(HalfOpen(), "GET", "watch=true"))
    response = watch(client, namespace)
    rule.release()
    with pytest.raises(BROKEN):
        response.read()


def test_a_cut_network_resets_everything_until_it_is_healed(
    proxy: FaultProxy, control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    response = watch(client, namespace)
    proxy.cut()
    with pytest.raises(BROKEN):
        response.read()
    with pytest.raises(BROKEN), Client(proxy, control_plane) as other:
        other.ask("GET", maps(namespace))
    proxy.heal()
    with Client(proxy, control_plane) as other:
        assert other.ask("GET", maps(namespace))[0] == 200


def test_a_paused_network_keeps_requests_and_connections(
    proxy: FaultProxy, control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    proxy.pause()
    answers: list[int] = []
    asking = threading.Thread(
        target=lambda: answers.append(client.ask("POST", maps(namespace), named("patient"))[0])
    )
    asking.start()
    with Client(proxy, control_plane, timeout=0.3) as other, pytest.raises(TimeoutError):
        other.ask("GET", maps(namespace))
    assert not is_there(control_plane, namespace, "patient")
    proxy.resume()
    asking.join(20)
    assert answers == [201]


def test_answers_pass_while_many_clients_ask_at_once(
    proxy: FaultProxy, control_plane: ControlPlane, namespace: str
) -> None:
    failed: list[object] = []

    def ask(number: int) -> None:
        with Client(proxy, control_plane) as client:
            for turn in range(10):
                status, _ = client.ask("POST", maps(namespace), named(f"m{number}-{turn}"))
                if status != 201:
                    failed.append(status)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    assert len(proxy.log.records("POST", namespace)) == 80
