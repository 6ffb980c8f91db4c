"""Keeping up with everything of one kind: list it, watch what happens to it, list it again.

One thread runs :meth:`Reflector.run`; whatever goes wrong in it costs time, never the loop. After a
stream broke it goes on from the last version it has seen, bookmarks included. It lists anew when
the server has forgotten that version, when a stream broke without having told anything (a server
that was restored to an earlier state stays silent), and every ``resync`` seconds, which repairs
what a stream left out. A stream on which nothing comes for ``quiet`` seconds counts as broken: a
server sends a bookmark before it ends one.

Pauses after failures are drawn from a range that grows with each (decorrelated jitter), so that the
clients of a server that comes back do not come back together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from threading import Lock
from typing import Final, Generic, Protocol, TypeVar

from blastyard.domain.errors import BlastyardError, Unavailable
from blastyard.kube.client import Client, Listing, Selection
from blastyard.kube.error import ServerTrouble
from blastyard.kube.resource import Resource
from blastyard.kube.watching import Changed, Expired, Gone, Watching

T = TypeVar("T")

_STREAM_SECONDS: Final = (22.0, 32.0)
"""How long a server is asked to keep a stream open; the spread keeps clients apart. Short, so that
one from which nothing comes any more is noticed soon; another takes its place without a list."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things take, in seconds."""

    resync: float = 300.0
    quiet: float = 36.0
    shortest_pause: float = 0.2
    longest_pause: float = 15.0


@dataclass(frozen=True, slots=True)
class Time:
    """Who says what time it is, and lets it pass: ``pause`` waits for so many seconds, or less."""

    monotonic: Callable[[], float]
    pause: Callable[[float], None]
    random: Random
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True, slots=True)
class Source(Generic[T]):
    """What to follow, and the type each object is decoded as.

    The list may leave out more than the watch: of what left the selection of a watch, a server says
    that it was deleted, and shows it as it was before.
    """

    resource: Resource
    item: type[T]
    listed: Selection = field(default_factory=Selection)
    watched: Selection = field(default_factory=Selection)


class Sink(Protocol[T]):
    """Takes in what is told. Called by one thread; moments are monotonic seconds."""

    def listed(self, listing: Listing[T]) -> None:
        """Everything there is."""
        ...

    def changed(self, item: T, at: float) -> None:
        """It was made or changed."""
        ...

    def gone(self, item: T, version: str, at: float) -> None:
        """It was deleted, at that version."""
        ...


class Reflector(Generic[T]):
    """The loop for one source."""

    def __init__(self, client: Client, source: Source[T], sink: Sink[T], time: Time) -> None:
        self.source = source
        self.restarts = 0
        """How often something went wrong."""
        self.trouble: Exception | None = None
        """What went wrong last; ``None`` while it goes well."""
        self._client = client
        self._sink = sink
        self._monotonic = time.monotonic
        self._pause = time.pause
        self._pace = time.pace
        self._random = time.random
        self._delay = time.pace.shortest_pause
        self._lock = Lock()
        self._stream: Watching[T] | None = None
        self._closed = False
        self._version = ""
        self._resync_at = 0.0
        self._heard_at = 0.0

    @property
    def is_following(self) -> bool:
        """Whether what was told is what there is, but for what is on its way.

        A loop that has not heard anything for twice the quiet limit hangs somewhere.
        """
        silent_for = self._monotonic() - self._heard_at
        return bool(self._version) and self.trouble is None and silent_for <= 2 * self._pace.quiet

    def run(self) -> None:
        """Go on until closed."""
        while not self._closed:
            try:
                self._step()
            except Exception as error:
                self._stumble(error)

    def close(self) -> None:
        """End the loop, from any thread; a ``pause`` is for its owner to end."""
        with self._lock:
            self._closed = True
            stream = self._stream
        if stream is not None:
            stream.close()

    def _step(self) -> None:
        if not self._version or self._monotonic() >= self._resync_at:
            listing = self._client.listing(
                self.source.resource, self.source.item, self.source.listed
            )
            self._sink.listed(listing)
            self._version = listing.version
            self._heard_at = listing.received_at
            self._resync_at = self._monotonic() + self._pace.resync
        self._follow()

    def _follow(self) -> None:
        """Take in what one stream tells."""
        left = max(1.0, self._resync_at - self._monotonic())
        seconds = int(min(self._random.uniform(*_STREAM_SECONDS), left) + 1)
        opened_at = self._monotonic()
        stream = self._client.watch(
            self.source.resource, self.source.item, self._version, self.source.watched, seconds
        )
        with self._lock:
            self._stream = stream
            closed = self._closed
        known = self._version
        try:
            if closed or self._take_in(stream):
                return
        except Unavailable:
            if self._version == known:
                self._version = ""
            raise
        finally:
            stream.close()
        if self._monotonic() - opened_at < 1.0:
            raise ServerTrouble("the API server ended a watch at once", "")

    def _take_in(self, stream: Watching[T]) -> bool:
        """Take in what it tells; whether it is us who had enough of it."""
        self.trouble = None
        self._heard_at = self._monotonic()
        for event in stream.events(self._pace.quiet):
            match event:
                case Expired():
                    self._version = ""
                    raise ServerTrouble("the API server has forgotten what was watched", "")
                case Changed(item, version):
                    self._sink.changed(item, self._monotonic())
                case Gone(item, version):
                    self._sink.gone(item, version, self._monotonic())
                case _:
                    version = event.version
            self._version = version
            self._heard_at = self._monotonic()
            self._delay = self._pace.shortest_pause
            if self._monotonic() >= self._resync_at:
                return True
        return self._closed

    def _stumble(self, error: Exception) -> None:
        if self._closed:
            return
        self.trouble = error
        self.restarts += 1
        if not isinstance(error, BlastyardError):
            self._version = ""  # a mistake in taking it in: what is known may be wrong
        wished = error.retry_after if isinstance(error, ServerTrouble) else None
        drawn = self._random.uniform(self._pace.shortest_pause, self._delay * 3)
        self._delay = min(self._pace.longest_pause, drawn)
        self._pause(max(self._delay, wished or 0.0))
