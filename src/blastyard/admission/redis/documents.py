"""Documents in one Redis, with its clock.

Redis forgets: it is started again empty or as it was some seconds ago, flushed, replaced, or evicts
what it has no room for. Nobody may be admitted on what it does not know any more, so

* the documents belong to a *data set* (see :mod:`~blastyard.admission.redis.script`). Every start
  of the server begins a new one, and so does whoever finds none, or one older than it has seen. A
  version holds the name of its data set, and fits in no other one;
* in a new data set there is neither lease nor ledger, and for the time of ``grace`` none is
  written: whoever was inside Gate A has ended by then, and whoever lives has signed on again. From
  there it is a lost ledger like any other, which waits for everybody's claims;
* of submitters, what is left stays, and each client brings back those it remembers: one that is cut
  off, or stopped, must be waited for as well.

Not guaranteed: anything, where two servers take writes for one (a failover without fencing); that
``grace`` lasts when the server's clock jumps ahead meanwhile.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from blastyard.admission.port import ABSENT, SUBMITTER, Snapshot, Version, Watch
from blastyard.admission.redis import script
from blastyard.admission.redis.address import Address
from blastyard.admission.redis.failure import REPLICA, told_as
from blastyard.admission.redis.line import Answer, Line, Word
from blastyard.admission.redis.script import Script
from blastyard.admission.redis.watch import Listener
from blastyard.domain.errors import BlastyardError, Misconfigured, Unavailable

JOINS: Final = 3
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things may take with a Redis."""

    timeout: timedelta = timedelta(seconds=1.5)
    """To connect, to sign in, and to answer, each."""
    grace: timedelta = timedelta(seconds=45)
    """How long a new data set has neither lease nor ledger: longer than the takeover of a lease,
    and long enough for several signs of life of everybody."""
    quiet: timedelta = timedelta(seconds=10)
    """After so long without news the listening connection is tried."""


@dataclass(frozen=True, slots=True)
class _DataSet:
    """What a client knows of the data it talks about: which, and how far it had come."""

    epoch: str = ""
    count: int = 0


class RedisDocumentStore:
    """A :class:`~blastyard.admission.port.DocumentStore`. Thread-safe, and safe to fork.

    Constructing opens nothing; :meth:`check` tells what would be in the way.
    """

    def __init__(
        self,
        address: Address,
        namespace: str,
        pace: Pace = Pace(),
        random: Random | None = None,
    ) -> None:
        if not namespace or set(namespace) & set("{}"):
            raise Misconfigured(
                "settings_invalid",
                f"The namespace {namespace!r} cannot be used in Redis.",
                "Set BLASTYARD_NAMESPACE to a name without braces.",
            )
        # what stands between the braces decides where a cluster keeps it
        self._key = f"blastyard:{{{namespace}}}:admission"
        self._channel = f"{self._key}:changes"
        self._pace = pace
        self._line = Line(address, pace.timeout)
        self._listener = Listener(
            self._line,
            self._channel,
            pace.quiet,
            random or Random(),  # noqa: S311  (it spreads load, and guards nothing)
        )
        self._known = _DataSet()
        self._submitters: Mapping[str, bytes] = {}

    def check(self) -> None:
        """Meet the server. Raises ``Unavailable`` and ``Misconfigured``."""
        self._join(self._known)

    def read(self, name: str) -> Snapshot:
        """The document as it is now. Raises ``Unavailable`` and ``Misconfigured``."""
        answer = self._ask(script.READ, name)
        return _snapshot(name, answer[3], answer[1])

    def scan(self, prefix: str) -> Mapping[str, Snapshot]:
        """All documents whose name starts with ``prefix``, by name. Raises as :meth:`read`."""
        answer = self._ask(script.SCAN, prefix)
        pairs = sorted((name.decode(), packed) for name, packed in _pairs(answer[3:]))
        found = {name: _snapshot(name, packed, answer[1]) for name, packed in pairs}
        if SUBMITTER.startswith(prefix):
            self._submitters = {
                name: each.body or b"" for name, each in found.items() if name.startswith(SUBMITTER)
            }
        return found

    def glance(self, name: str) -> Snapshot:
        """As :meth:`read`: there is no cache."""
        return self.read(name)

    def glance_all(self, prefix: str) -> Mapping[str, Snapshot]:
        """As :meth:`scan`: there is no cache."""
        return self.scan(prefix)

    def swap(self, name: str, version: Version, body: bytes | None) -> Snapshot | None:
        """Write when the version still is ``version``; ``None`` on a conflict.

        Wakes all watches when it wrote, signs of life apart. Raises ``Unavailable``: unless it says
        that Redis was restarted or is full, the swap may have happened.
        """
        if version != ABSENT and not isinstance(version, str):
            return None  # no version of this store
        quiet = name.startswith(SUBMITTER)  # a sign of life concerns nobody who waits
        answer = self._ask(
            script.SWAP,
            name,
            str(version),
            0 if quiet else _microseconds(self._pace.grace),
            "" if quiet else self._channel,
            self._listener.sender,
            *(() if body is None else (body,)),
        )
        if answer[0] == script.CONFLICT:
            return None
        if answer[0] == script.EARLY:
            raise self._too_early(timedelta(microseconds=int(answer[3])))
        if not quiet:
            self._listener.ring()
        now = _instant(answer[1])
        if body is None:
            return Snapshot(name, None, ABSENT, None, now)
        return Snapshot(name, body, answer[3].decode(), now, now)

    def notify(self) -> None:
        """Wake the watches of all processes. Never raises."""
        self._listener.ring()
        with suppress(BlastyardError):
            self._line.ask("PUBLISH", self._channel, self._listener.sender)

    def watch(self) -> Watch:
        """A watch of this process; forgotten when its owner drops it."""
        return self._listener.watch()

    @property
    def trouble(self) -> BlastyardError | None:
        """What keeps this process from hearing of changes at the moment."""
        return self._listener.trouble

    def inaugurate(self) -> None:
        """Do without the grace, once: somebody answers for it that nobody holds anything."""
        self._ask(script.INAUGURATE, self._channel, self._listener.sender)

    def close(self) -> None:
        """Close all connections."""
        self._listener.close()
        self._line.close()

    # -- the data set ----------------------------------------------------------------------------

    def _ask(self, what: Script, *words: Word) -> Answer:
        for _ in range(JOINS):
            known = self._known
            answer = self._line.run(what, self._key, (known.epoch, known.count, *words))
            if answer[0] != script.STRANGE:
                self._learn(_DataSet(known.epoch, answer[2]))
                return answer
            self._join(known)
        raise Unavailable(
            "store_unavailable", f"{self._line.address} loses its data again and again."
        )

    def _learn(self, seen: _DataSet) -> None:
        """Of two threads that do this at a time, either may be the last: both are right."""
        known = self._known
        if seen.epoch == known.epoch and seen.count > known.count:
            self._known = seen

    def _join(self, known: _DataSet) -> None:
        """Take on the data set that is there, begun anew if it must be."""
        self._inspect(is_first=not known.epoch)
        remembered = [word for pair in self._submitters.items() for word in pair]
        arguments = (
            known.epoch,
            known.count,
            secrets.token_hex(8),
            _microseconds(self._pace.grace),
            self._channel,
            self._listener.sender,
            *remembered,
        )
        _, _, count, epoch, run = self._line.run(script.JOIN, self._key, arguments)
        if not run:
            raise Misconfigured(
                "settings_invalid",
                f"{self._line.address} does not say when it was started (run_id).",
                "Use Redis 5 or newer, or Valkey.",
            )
        self._known = _DataSet(epoch.decode(), count)

    def _inspect(self, *, is_first: bool) -> None:
        """Refuse a server that would lose what it is given."""
        told = _told(self._line.ask("INFO"))
        if told.get("role", "master") != "master":
            error = told_as(REPLICA, self._line.address)
            if is_first:
                raise Misconfigured("settings_invalid", error.message, error.next_step)
            raise error
        policy = told.get("maxmemory_policy", "")
        if told.get("maxmemory", "0") != "0" and policy.startswith("allkeys"):
            evicted = told.get("evicted_keys", "0")
            raise Misconfigured(
                "settings_invalid",
                f"{self._line.address} throws away what it has no room for, also who was admitted "
                f"(maxmemory-policy {policy}; {evicted} evicted so far).",
                "Set maxmemory-policy to noeviction, in redis.conf and with redis-cli CONFIG SET, "
                "or give blastyard a Redis of its own.",
            )

    def _too_early(self, left: timedelta) -> Unavailable:
        error = Unavailable(
            "store_unavailable",
            f"{self._line.address} is new, was emptied or was started again, and may have "
            f"forgotten who was admitted; nobody is for {left.total_seconds():.0f} s more. "
            "Nothing was written.",
            "Wait: whoever runs something says so meanwhile, and then it goes on by itself.",
        )
        error.retry_after = left.total_seconds()
        return error


def _told(text: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in text.decode("utf-8", "replace").splitlines())
    return {name: value for name, _, value in lines}


def _pairs(words: list[Any]) -> Iterator[tuple[bytes, bytes]]:
    return zip(words[::2], words[1::2], strict=True)


def _snapshot(name: str, packed: bytes | None, now: bytes) -> Snapshot:
    if packed is None:
        return Snapshot(name, None, ABSENT, None, _instant(now))
    version, stamped_at, body = packed.split(b" ", 2)
    return Snapshot(name, body, version.decode(), _instant(stamped_at), _instant(now))


def _instant(microseconds: bytes) -> datetime:
    return _EPOCH + timedelta(microseconds=int(microseconds))


def _microseconds(span: timedelta) -> int:
    return span // timedelta(microseconds=1)
