"""Open watches, and what tests do to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import Final

import msgspec

from blastyard.kube.wire import Stream
from blastyard.testing.memory_api.feed import Feed, Schedule, Signal
from blastyard.testing.memory_api.kind import Place
from blastyard.testing.memory_api.listing import selected
from blastyard.testing.memory_api.refusal import Refusal, expired
from blastyard.testing.memory_api.selector import parse
from blastyard.testing.memory_api.storage import Deafness, Event, Scope, Storage, error_line

BOOKMARK_SECONDS: Final = 60.0
WATCH_SECONDS: Final = 1800.0


class Watches:
    """The watches of one API server. ``plural`` names a resource; ``None`` means all of them."""

    def __init__(
        self,
        storage: Storage,
        lock: RLock,
        monotonic: Callable[[], float],
        signal: Callable[[], Signal],
    ) -> None:
        self.bookmark_seconds = BOOKMARK_SECONDS
        """How often watches that allow bookmarks get one, if nobody sends one."""
        self.watch_seconds = WATCH_SECONDS
        """How long a watch goes on that named no time."""
        self._storage = storage
        self._lock = lock
        self._monotonic = monotonic
        self._signal = signal

    def count(self, plural: str | None = None) -> int:
        """How many are open."""
        return len(self._feeds(plural))

    def bookmark(self, plural: str | None = None) -> None:
        """Send a bookmark to those that allow them."""
        with self._lock:
            for feed in self._feeds(plural):
                if feed.wants_bookmarks:
                    self._storage.bookmark(feed)

    def drop_next(self, plural: str, event: str | None = None, count: int = 1) -> None:
        """Let the next events of a resource, or those of one type, go unheard by all open watches.

        A watch that is opened later at a version before them hears them.
        """
        with self._lock:
            self._storage.deafness.append(Deafness(plural, event, count))

    def end(self, plural: str | None = None) -> None:
        """Let the server close them, as it does at their time-out."""
        for feed in self._feeds(plural):
            feed.end()

    def cut(self, plural: str | None = None) -> None:
        """Reset their connections; what was not heard yet is lost."""
        for feed in self._feeds(plural):
            feed.cut()

    def silence(self, plural: str | None = None) -> None:
        """Let their connections be half open: nothing comes any more, nor do they end."""
        for feed in self._feeds(plural):
            feed.silence()

    def open(self, at: Place, query: Mapping[str, str]) -> Stream:
        """Begin to watch. Raises ``Refusal``. Whoever calls holds the lock."""
        version = _version(query)
        scope = Scope(at.kind, at.namespace, parse(at.kind, query), version)
        feed = self._feed(query)
        if 0 < version < self._storage.oldest:
            feed.offer(error_line(_too_old(version, self._storage.oldest)))
            feed.end()
            return feed
        self._storage.feeds[feed] = scope
        if version:
            for event in self._storage.history:
                self._offer(feed, scope, event)
            return feed
        for record in selected(self._storage, at, scope.selector):
            self._offer(feed, scope, Event(at.kind, at.namespace, record.revision, None, record))
        if feed.wants_bookmarks:
            self._storage.bookmark(feed, initial=True)
        return feed

    def _offer(self, feed: Feed, scope: Scope, event: Event) -> None:
        said = scope.line(event)
        if said is not None:
            feed.offer(said[1])

    def _feed(self, query: Mapping[str, str]) -> Feed:
        now = self._monotonic()
        seconds = float(query.get("timeoutSeconds", 0)) or self.watch_seconds
        wants = query.get("allowWatchBookmarks") in ("1", "true")
        first = now + self.bookmark_seconds if wants else float("inf")
        schedule = Schedule(self._monotonic, now + seconds, first, self.bookmark_seconds)
        return Feed(schedule, self._signal(), self._bookmark, self._detach)

    def _feeds(self, plural: str | None) -> list[Feed]:
        with self._lock:
            scopes = self._storage.feeds.items()
            return [feed for feed, scope in scopes if plural in (None, scope.kind.plural)]

    def _bookmark(self, feed: Feed) -> None:
        with self._lock:
            self._storage.bookmark(feed)

    def _detach(self, feed: Feed) -> None:
        with self._lock:
            self._storage.feeds.pop(feed, None)


def _version(query: Mapping[str, str]) -> int:
    text = query.get("resourceVersion", "") or "0"
    if not (text.isascii() and text.isdigit()):
        said = f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise Refusal(500, None, f"resourceVersion: {said}")
    return int(text)


def _too_old(version: int, oldest: int) -> bytes:
    message = f"too old resource version: {version} ({oldest})"
    return msgspec.json.encode(expired(message).document)
