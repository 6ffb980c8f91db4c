"""Who submits here, and who of them is alive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

import msgspec

from blastyard.admission.ledger import Policy, Submitter, encode
from blastyard.admission.port import SUBMITTER, DocumentStore
from blastyard.admission.timing import Timings

_DECODER = msgspec.json.Decoder(Submitter)


@dataclass(frozen=True, slots=True)
class Presence:
    """A submitter as the store shows it. ``gone`` is certain; silence alone is not."""

    submitter: Submitter
    silent_for: timedelta
    gone: bool
    version: int

    def is_alive(self, timings: Timings) -> bool:
        """Whether its tickets take their turns."""
        return not self.gone and self.silent_for < timings.lapse


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
    ) -> None:
        self._documents = documents
        self._me = me
        self._is_gone = is_gone
        self._version = 0

    def beat(self, policy: Policy | None) -> None:
        """Give a sign of life, and remember the policy for the day the ledger is lost."""
        me = msgspec.structs.replace(self._me, policy=policy)
        name = SUBMITTER + me.name
        written = self._documents.swap(name, self._version, encode(me))
        if written is None:
            self._version = self._documents.read(name).version
            written = self._documents.swap(name, self._version, encode(me))
        if written is not None:
            self._version = written.version

    def retire(self) -> None:
        """Sign off."""
        self.forget(self._me.name)
        self._version = 0

    def forget(self, name: str) -> None:
        """Remove the document of a submitter that has ended."""
        snapshot = self._documents.read(SUBMITTER + name)
        if snapshot.body is not None:
            self._documents.swap(snapshot.name, snapshot.version, None)

    def read(self) -> Mapping[str, Presence]:
        """Everybody, by name."""
        found = {}
        for snapshot in self._documents.scan(SUBMITTER).values():
            if snapshot.body is None:
                continue
            submitter = _DECODER.decode(snapshot.body)
            silent_for = snapshot.now - (snapshot.stamped_at or snapshot.now)
            gone = self._is_gone(submitter)
            found[submitter.name] = Presence(submitter, silent_for, gone, snapshot.version)
        return found
