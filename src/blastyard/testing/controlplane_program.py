"""The command lines of a control plane's programs, and the files they read.

Everything is on loopback and in one directory. The API server makes its own certificate there.
"""

from __future__ import annotations

import base64
import random
import secrets
import shutil
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

ADDRESS: Final = "127.0.0.1"
ETCD: Final = "etcd"
API: Final = "kube-apiserver"
MANAGER: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"
KUBECTL: Final = "kubectl"
PROGRAMS: Final = (ETCD, API, MANAGER, SCHEDULER, KUBECTL)

Controllers = bool | Literal["all"]

CONTROLLERS: Final = (
    "clusterrole-aggregation-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "ttl-after-finished-controller",
)
"""What runs unless all of them are asked for: no node is here for the others to look after."""

_RESERVED_PORTS: Final = 10_000
_EPHEMERAL_PORTS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_QPS: Final = ("--kube-api-qps=200", "--kube-api-burst=400", "--leader-elect=false")

# RFC 5915: version 1, the 32 bytes of the private key, the curve prime256v1; no public key, which
# whoever reads it computes.
_EC_KEY: Final = (bytes.fromhex("30310201010420"), bytes.fromhex("a00a06082a8648ce3d030107"))
_EC_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


@dataclass(frozen=True, slots=True)
class Ports:
    """TCP ports of one control plane, all on loopback."""

    api: int
    etcd: int
    etcd_peer: int

    @classmethod
    def free(cls) -> Ports:
        """Ports nobody listens on now, which no outgoing connection is given.

        Nothing keeps another program from taking one before we listen: whoever starts programs on
        them must be ready to try others.
        """
        first = int(_EPHEMERAL_PORTS.read_text().split()[0])
        candidates = random.sample(range(_RESERVED_PORTS, max(first, _RESERVED_PORTS + 1000)), 1000)
        return cls(*_free(candidates, 3))


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the files of one control plane are."""

    directory: Path

    @property
    def data(self) -> Path:
        return self.directory / "etcd"

    @property
    def keys(self) -> Path:
        return self.directory / "keys"

    @property
    def ca_file(self) -> Path:
        """The API server's certificate and the authority that signed it; the server writes it."""
        return self.keys / "apiserver.crt"

    @property
    def account_key(self) -> Path:
        """The key that service account tokens are signed and checked with."""
        return self.keys / "service-accounts.pem"

    @property
    def tokens(self) -> Path:
        return self.keys / "tokens.csv"

    @property
    def bin(self) -> Path:
        """A folder for PATH: it has kubectl and nothing else."""
        return self.directory / "bin"

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def state(self) -> Path:
        return self.directory / "state.json"

    @property
    def socket(self) -> Path:
        return self.directory / "keeper.sock"

    def log(self, program: str) -> Path:
        return self.directory / f"{program}.log"

    def prepare(self, admin_token: str) -> None:
        """Make the directories and the secrets, for this account's eyes only."""
        self.keys.mkdir(mode=0o700)
        self.data.mkdir(mode=0o700)
        _write_secret(self.tokens, f'{admin_token},admin,admin,"system:masters"\n')
        _write_secret(self.account_key, _new_key())


def clear(directory: Path) -> None:
    """Remove everything of a control plane but its logs."""
    layout = Layout(directory)
    for folder in (layout.data, layout.keys, layout.bin):
        shutil.rmtree(folder, ignore_errors=True)
    for file in (layout.kubeconfig, layout.state, layout.socket):
        file.unlink(missing_ok=True)


def commands(
    layout: Layout, ports: Ports, controllers: Controllers, durable: bool
) -> Mapping[str, list[str]]:
    """Program to its arguments, for every program that can run."""
    return {
        ETCD: _etcd(layout, ports, durable),
        API: _api_server(layout, ports),
        MANAGER: _manager(layout, controllers),
        SCHEDULER: [f"--kubeconfig={layout.kubeconfig}", "--secure-port=0", *_QPS],
    }


def _etcd(layout: Layout, ports: Ports, durable: bool) -> list[str]:
    client, peer = (f"http://{ADDRESS}:{port}" for port in (ports.etcd, ports.etcd_peer))
    arguments = [
        f"--data-dir={layout.data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--log-level=warn",
    ]
    return arguments if durable else [*arguments, "--unsafe-no-fsync"]


def _api_server(layout: Layout, ports: Ports) -> list[str]:
    return [
        f"--etcd-servers=http://{ADDRESS}:{ports.etcd}",
        f"--bind-address={ADDRESS}",
        f"--advertise-address={ADDRESS}",
        f"--secure-port={ports.api}",
        f"--cert-dir={layout.keys}",
        f"--token-auth-file={layout.tokens}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={layout.account_key}",
        f"--service-account-signing-key-file={layout.account_key}",
        "--service-cluster-ip-range=10.96.0.0/24",
        # the address of a loopback server is no endpoint that a pod could use
        "--endpoint-reconciler-type=none",
        "--allow-privileged=true",
        "--event-ttl=10m",
        "--profiling=false",
    ]


def _manager(layout: Layout, controllers: Controllers) -> list[str]:
    which = "*" if controllers == "all" else ",".join(CONTROLLERS)
    return [
        f"--kubeconfig={layout.kubeconfig}",
        f"--controllers={which}",
        f"--service-account-private-key-file={layout.account_key}",
        f"--root-ca-file={layout.ca_file}",
        "--secure-port=0",
        "--concurrent-namespace-syncs=4",
        *_QPS,
    ]


def _free(candidates: Iterable[int], count: int) -> list[int]:
    found: list[int] = []
    for port in candidates:
        with socket.socket() as probe:
            try:
                probe.bind((ADDRESS, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"no {count} free ports on {ADDRESS}")


def _new_key() -> str:
    number = 1 + secrets.randbelow(_EC_ORDER - 1)
    before, after = _EC_KEY
    text = base64.encodebytes(before + number.to_bytes(32, "big") + after).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{text}-----END EC PRIVATE KEY-----\n"


def _write_secret(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
