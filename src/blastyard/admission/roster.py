"""Who submits here, and who of them is alive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import msgspec

from blastyard.admission.ledger import Policy, Submitter, encode
from blastyard.admission.port import ABSENT, SUBMITTER, DocumentStore, Snapshot, Version
from blastyard.admission.timing import Timings
from blastyard.domain.errors import Unavailable

CONFLICTS: Final = 20

ROWLESS: Final = ("exec-", "command-")
"""How submitters are called that have no store to come back to."""

_DECODER = msgspec.json.Decoder(Submitter)


@dataclass(frozen=True, slots=True)
class Presence:
    """A submitter as the store shows it. ``gone`` is certain; silence alone is not."""

    submitter: Submitter
    silent_for: timedelta
    gone: bool
    gone_for: timedelta
    """For how long this process has known that it is gone."""
    version: Version

    def is_alive(self, timings: Timings) -> bool:
        """Whether its tickets take their turns."""
        return not self.gone and self.silent_for < timings.lapse


def is_rowless(submitter: str) -> bool:
    """Whether nothing can ever take up what this submitter leaves: all it knows is in its process,
    and in the markers of what it submitted."""
    return submitter.startswith(ROWLESS)


def _decoded(name: str, body: bytes) -> Submitter:
    """A submitter; of one that cannot be read only its signs of life are known."""
    try:
        return _DECODER.decode(body)
    except msgspec.DecodeError:
        return Submitter(name.removeprefix(SUBMITTER), "unreadable", -1)


class Roster:
    """Reads and writes the submitters' documents.

    ``is_gone`` tells whether a submitter has certainly ended, as far as this machine can know;
    where it cannot, it says no.
    """

    def __init__(
        self,
        documents: DocumentStore,
        me: Submitter,
        is_gone: Callable[[Submitter], bool],
        monotonic: Callable[[], float],
    ) -> None:
        self._documents = documents
        self._me = me
        self._is_gone = is_gone
        self._monotonic = monotonic
        self._gone_at: dict[str, float] = {}
        self._version: Version = ABSENT

    def beat(self, policy: Policy | None) -> None:
        """Give a sign of life, and remember the policy for the day the ledger is lost.

        Raises ``Unavailable`` when it was not written: whoever is not in the roster counts as gone.
        """
        me = msgspec.structs.replace(self._me, policy=policy)
        name = SUBMITTER + me.name
        for _ in range(CONFLICTS):
            written = self._documents.swap(name, self._version, encode(me))
            if written is not None:
                self._version = written.version
                return
            self._version = self._documents.read(name).version
        raise Unavailable(
            "store_unavailable",
            f"the sign of life of {me.name} could not be written",
            "try again; nobody but that process should write it",
        )

    def retire(self) -> None:
        """Sign off."""
        name, version = SUBMITTER + self._me.name, self._version
        self._version = ABSENT
        if version == ABSENT or self._documents.swap(name, version, None) is None:
            self.forget(self._me.name)

    def forget(self, name: str) -> None:
        """Remove the document of a submitter that has ended."""
        snapshot = self._documents.read(SUBMITTER + name)
        if snapshot.body is not None:
            self._documents.swap(snapshot.name, snapshot.version, None)

    def glance(self) -> Mapping[str, Presence]:
        """Everybody, by name, as it was lately."""
        return self._presences(self._documents.glance_all(SUBMITTER))

    def read(self) -> Mapping[str, Presence]:
        """Everybody, by name."""
        return self._presences(self._documents.scan(SUBMITTER))

    def _presences(self, snapshots: Mapping[str, Snapshot]) -> Mapping[str, Presence]:
        found = {}
        for snapshot in snapshots.values():
            if snapshot.body is None:
                continue
            submitter = _decoded(snapshot.name, snapshot.body)
            silent_for = snapshot.now - (snapshot.stamped_at or snapshot.now)
            gone_for = self._gone_for(submitter)
            found[submitter.name] = Presence(
                submitter,
                silent_for,
                gone_for is not None,
                gone_for or timedelta(0),
                snapshot.version,
            )
        return found

    def _gone_for(self, submitter: Submitter) -> timedelta | None:
        if not self._is_gone(submitter):
            return None
        now = self._monotonic()
        return timedelta(seconds=now - self._gone_at.setdefault(submitter.name, now))
