"""``scripts/team``: every process of a team installation, started and ended together."""

# ruff: noqa: T201  (a command: printing is what it is for)

from __future__ import annotations

import argparse
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import IO, Final

from blastyard.domain.errors import BlastyardError
from blastyard.settings import caller_environment
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.postgres import PostgresServer
from blastyard.testing.redis_server import RedisServer

NAMESPACE: Final = "blast"
END_SECONDS: Final = 70.0
BLASTYARD: Final = (sys.executable, "-m", "blastyard")
_SAMPLES: Final = Path(__file__).parents[3] / "scripts" / "samples"


@dataclass(frozen=True, slots=True)
class Part:
    """One process, and what its lines begin with."""

    name: str
    process: subprocess.Popen[str]


class Crew:
    """The processes. The first that ends by itself ends all."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.ended = Event()
        self._environment = dict(environment)
        self._parts: list[Part] = []

    def start(self, name: str, *words: str) -> None:
        """Start one of blastyard's programs; each line of it is shown under its name."""
        process = subprocess.Popen(
            [*BLASTYARD, *words],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C is for us to pass on, in order
        )
        self._parts.append(Part(name, process))
        if process.stdout is not None:
            Thread(target=self._show, args=(name, process.stdout), daemon=True).start()

    def stop(self) -> None:
        """End all, those first that were started last; nothing runs when this returns."""
        for part in reversed(self._parts):
            part.process.send_signal(signal.SIGTERM)
        for part in reversed(self._parts):
            try:
                part.process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                part.process.kill()
                part.process.wait()

    def _show(self, name: str, lines: IO[str]) -> None:
        for line in lines:
            print(f"{name}: {line}", end="", flush=True)
        if not self.ended.is_set():
            print(f"{name}: ended", flush=True)
        self.ended.set()


@contextmanager
def servers(folder: Path, *, cluster: bool) -> Iterator[dict[str, str]]:
    """PostgreSQL, Redis and, if wanted, a control plane: what the environment says of them."""
    with ExitStack() as stack:
        postgres = stack.enter_context(PostgresServer.make())
        redis = RedisServer(folder / "redis")
        redis.folder.mkdir()
        stack.enter_context(redis)
        found = {
            "BLASTYARD_HOME": str(folder / "home"),
            "BLASTYARD_STORE_URL": postgres.create_database(),
            "BLASTYARD_REDIS_URL": redis.url,
        }
        if cluster:
            plane = stack.enter_context(ControlPlane.start(folder / "cluster"))
            plane.create_namespace(NAMESPACE)
            kubeconfig = folder / "kubeconfig"
            plane.write_kubeconfig(kubeconfig, plane.admin_token, NAMESPACE)
            found |= {"KUBECONFIG": str(kubeconfig), "BLAST_COORD_BACKEND": "k8s"}
        yield found


def main(argv: Sequence[str]) -> int:
    """Start all of it, follow it, end it. The exit code."""
    parser = argparse.ArgumentParser(prog="scripts/team")
    parser.add_argument("--replicas", type=int, default=2, help="web replicas")
    parser.add_argument("--workers", type=int, default=2, help="workers")
    parser.add_argument("--no-cluster", action="store_true", help="no Kubernetes API")
    asked = parser.parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix="by-", dir="/tmp") as folder:  # a short path
            return _run(Path(folder), asked)
    except BlastyardError as error:
        print(f"team: {error}", file=sys.stderr)
        return 1


def _run(folder: Path, asked: argparse.Namespace) -> int:
    with servers(folder, cluster=not asked.no_cluster) as found:
        environment = {**caller_environment(), **found}
        file = folder / "env"
        file.touch(mode=0o600)  # there are passwords in it
        file.write_text("".join(f"export {n}={shlex.quote(v)}\n" for n, v in found.items()))
        crew = Crew(environment)
        try:
            subprocess.run([str(_SAMPLES)], env=environment, check=False)
            for number in range(1, asked.workers + 1):
                crew.start(f"worker-{number}", "worker")
            crew.start("beat", "beat")
            for number in range(1, asked.replicas + 1):
                crew.start(f"web-{number}", "serve", "--replica", "--port", "0")
            print(f"team: for commands in another terminal:  . {file}", flush=True)
            while not crew.ended.wait(1.0):
                pass
        except KeyboardInterrupt:
            print("team: ending", flush=True)
            crew.ended.set()
            return 0
        finally:
            crew.stop()
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
