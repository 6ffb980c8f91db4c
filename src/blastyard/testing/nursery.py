"""A process that forks real blastyard processes, each in milliseconds.

``python -m blastyard.testing.nursery <socket>`` imports everything once. Each message on the socket
is an :class:`Order` with one end of a socket pair; the child that is forked for it opens the data
directory and works, obeys the lines that come through its end (:class:`Life`), and says there what
happens. It is a process like any other blastyard: own pid, own connections, own guardian children.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from threading import Lock, Thread

import msgspec

from blastyard.admission.timing import Timings
from blastyard.bootstrap.gate import this_process
from blastyard.bootstrap.yard import Yard, open_yard
from blastyard.domain.search import Search
from blastyard.service.draft import Draft
from blastyard.service.intake import query_chunks
from blastyard.settings import read_settings
from blastyard.testing.checkpoint import Checkpoints, Strike
from blastyard.testing.forking import forked
from blastyard.worker.inprocess import Worker


class Order(msgspec.Struct, frozen=True):
    """What a process of the installation is to be."""

    environment: dict[str, str]
    kind: str = "serve"
    works: bool = True
    """Whether it signs on and runs a worker; otherwise it only submits."""
    adopts: bool = True
    timings: dict[str, float] = {}
    """Seconds, instead of the protocol's."""
    strike: Strike | None = None
    record: str = ""
    log: str = os.devnull


class Request(msgspec.Struct, frozen=True):
    """A search to submit: the file of its query, and the words of its draft."""

    query: str
    draft: dict[str, str]
    own: bool = True
    """Whether the process that submits it also runs it; otherwise the service, or nobody."""


class Life:
    """One child. Commands: ``submit <Request>``, ``take <id>``, ``beat``, ``end``; at the end of
    the socket it ends as well."""

    def __init__(self, order: Order, line: socket.socket) -> None:
        self._order = order
        self._line = line
        self._lock = Lock()
        self._worker: Worker | None = None

    def live(self) -> None:
        """From opening the data directory to signing off."""
        order = self._order
        record = Path(order.record) if order.record else None
        checkpoints = Checkpoints(order.strike, record, self._say)
        seam = checkpoints.seam(timings_of(order.timings))
        me = this_process(order.kind)
        yard = open_yard(read_settings(order.environment), me, signed_on=order.works, seam=seam)
        thread = self._work(yard) if order.works else None
        self._say(f"ready {me.name}")
        self._obey(yard)
        if self._worker is not None and thread is not None:
            self._worker.stop()
            thread.join()
        yard.close()
        self._say("ended")

    def _work(self, yard: Yard) -> Thread:
        self._worker = yard.make_worker(self._wants)
        thread = Thread(target=self._worker.run, name="worker", daemon=True)
        thread.start()
        return thread

    def _wants(self, _: Search) -> bool:
        return self._order.adopts

    def _obey(self, yard: Yard) -> None:
        commands: dict[str, Callable[[Yard, str], None]] = {
            "submit": self._submit,
            "take": self._take,
        }
        for line in self._line.makefile("r"):
            word, _, rest = line.strip().partition(" ")
            if word == "end":
                return
            try:
                commands[word](yard, rest)
            except Exception as error:
                self._say(f"failed {error!r}")

    def _submit(self, yard: Yard, text: str) -> None:
        request = msgspec.json.decode(text, type=Request)
        runner = yard.gate.me.name if request.own else yard.searches.service()
        draft = msgspec.convert(request.draft, Draft)
        done = yard.searches.submit(draft, query_chunks(Path(request.query)), runner=runner)
        if request.own and self._worker is not None:
            self._worker.take([done.search.id])
        self._say(f"submitted {done.search.id} {done.created}")

    def _take(self, yard: Yard, search_id: str) -> None:
        taken = yard.sweep.adopt(search_id)
        if taken and self._worker is not None:
            self._worker.take([search_id])
        self._say(f"taken {taken}")

    def _say(self, what: str) -> None:
        with self._lock:
            self._line.sendall(what.encode() + b"\n")


def timings_of(seconds: Mapping[str, float]) -> Timings | None:
    """The protocol's constants, some of them replaced; ``None`` when none is."""
    if not seconds:
        return None
    numbers = {"passes"}
    return Timings(
        **{
            name: int(value) if name in numbers else timedelta(seconds=value)  # type: ignore[arg-type]
            for name, value in seconds.items()
        }
    )


def _child(message: bytes, line: socket.socket) -> None:
    try:
        order = msgspec.json.decode(message, type=Order)
        logging.basicConfig(
            filename=order.log,
            level="INFO",
            format="%(asctime)s %(process)d %(threadName)s %(levelname)s %(message)s",
        )
        Life(order, line).live()
    except BaseException:
        line.sendall(f"failed {traceback.format_exc()!r}\n".encode())
        raise


def main(number: int) -> None:
    """Fork a child for each order until the socket ends."""
    given = forked(number)
    if given is None:
        return
    try:
        message, [descriptor] = given
        with socket.socket(fileno=descriptor) as line:
            _child(message, line)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
