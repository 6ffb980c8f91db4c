"""What an operator decides about a shared namespace, beyond its policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from blastyard.admission import census as sightings
from blastyard.admission.gate import Gate
from blastyard.admission.lease import holder_name
from blastyard.admission.ledger import FORMAT, Hold, Ledger, Policy, decode_ledger, encode
from blastyard.admission.picture import Picture
from blastyard.admission.port import LEDGER, DocumentStore, Snapshot
from blastyard.admission.restoration import Known, begun
from blastyard.domain.errors import CallerMistake, Conflict, NotFound, Unavailable
from blastyard.service.gate_view import Where

_SHOWN: Final = 10
NEWER: Final = (
    "update this blastyard to the version that the others run; it is not rebuilt, since they can "
    "read it"
)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A ledger was begun in the place of one that could not be read."""

    policy: Policy
    remembered: bool
    """A submitter remembers this policy; otherwise it is the one that the settings begin with."""


class Operating:
    """Acts on what an operator knows, and the documents do not."""

    def __init__(self, gate: Gate, documents: DocumentStore, where: Where | None) -> None:
        self._gate = gate
        self._documents = documents
        self._where = where

    # -- the queue -----------------------------------------------------------------------------

    def park(self, text: str, by: str) -> str:
        """Set a waiting search aside; its id. Raises ``CallerMistake`` for what does not wait."""
        search = self._waiting(text)
        if not self._gate.park(search, by):
            raise _not_waiting(search)
        return search

    def unpark(self, text: str) -> str:
        """Let a parked search take its turn again; its id. Raises as :meth:`park`."""
        search = self._waiting(text)
        if not self._gate.unpark(search):
            raise _not_waiting(search)
        return search

    def _waiting(self, text: str) -> str:
        ledger = self._gate.ledger()
        search = chosen(text, [*ledger.tickets, *ledger.holds], "search that waits or runs")
        if search not in ledger.tickets:
            raise _not_waiting(search)
        return search

    # -- what nothing stands behind ------------------------------------------------------------

    def forget(self, text: str) -> str:
        """Count a foreign finalizer that is alone no more; its id.

        Asking again changes nothing. Raises ``NotFound`` when no such id is seen, and ``Conflict``
        when there is more to it than a lone finalizer.
        """
        picture = self._gate.picture()
        ledger = self._gate.ledger()
        known = [*picture.census.sightings, *ledger.holds]
        search = chosen(text, known, "search that runs")
        if search in sightings.slot_names(ledger.holds):
            raise Conflict(
                "request_invalid",
                f"{search} has a hold in the ledger: it is no lone finalizer",
                f"if it has ended all the same: `blastyard gate forget --hold {search}`",
            )
        seen = picture.census.sightings[search]
        if not sightings.is_lone(ledger, seen):
            what = "other Jobs of it run too" if seen.finalizer else "it has no finalizer"
            raise Conflict(
                "request_invalid",
                f"{search} is more than a lone finalizer: {what}",
                f"if it has ended all the same, delete its Jobs: {self._deletes(search)}",
            )
        self._gate.outlook.change(self._forgotten(search, picture))
        return search

    def _forgotten(
        self, search: str, picture: Picture
    ) -> Callable[[Ledger, datetime], Ledger | None]:
        timings = self._gate.timings

        def rule(ledger: Ledger, now: datetime) -> Ledger | None:
            noted = sightings.noted(ledger, picture.census, now, timings)
            after = sightings.forget(noted, search, now, timings)
            return after or (None if noted is ledger else noted)

        return rule

    def end_hold(self, text: str) -> str:
        """Take the operator's word that a search has ended: its run slot is free; its id.

        Raises ``NotFound`` when there is no such hold, and ``Conflict`` while its attempt is inside
        Gate A or something of it is seen running.
        """
        picture = self._gate.picture()
        ledger = self._gate.ledger()
        search = chosen(text, ledger.holds, "hold")
        hold = ledger.holds[search]
        self._refuse_living(search, hold, picture)
        self._gate.give_up(search, hold.fence)
        return search

    def _refuse_living(self, search: str, hold: Hold, picture: Picture) -> None:
        if picture.lease.lease.holder_identity == holder_name(search, hold.attempt):
            raise Conflict(
                "request_invalid",
                f"{search} is inside the submit slot: its command may be running",
                "wait until it has let the slot go, or until its silence makes it free",
            )
        name = hold.alias or search
        if name in picture.census.sightings:
            raise Conflict(
                "request_invalid",
                f"Jobs of {search} are still running, so it counts with or without its hold",
                f"cancel it, or delete its Jobs: {self._deletes(name)}",
            )

    def _deletes(self, name: str) -> str:
        return self._where.deletes(name) if self._where else "wherever it runs"

    # -- the ledger ----------------------------------------------------------------------------

    def refuse_readable(self) -> Snapshot:
        """The ledger that cannot be read.

        Raises ``Conflict`` for one that can be read, ``NotFound`` when there is none, and
        ``Unavailable('ledger_unreadable')`` for one of a newer format, which others can read.
        """
        snapshot = self._documents.read(LEDGER)
        if snapshot.body is None:
            raise NotFound(
                "request_invalid",
                "there is no ledger, so nothing has to be removed",
                "`blastyard gate sweep` begins a new one, as any submitter does",
            )
        if _is_readable(snapshot.body):
            raise Conflict(
                "request_invalid",
                "the ledger can be read, so it is left as it is",
                "`blastyard gate status` shows it; `blastyard gate sweep` keeps it in order",
            )
        return snapshot

    def rebuild(self, seed: Policy, uid: str) -> Rebuilt:
        """Begin a ledger in the place of one that cannot be read, by one swap.

        Nobody is admitted on it before it is whole again. Raises as :meth:`refuse_readable`, and
        ``Conflict`` when somebody else wrote it at the same moment.
        """
        snapshot = self.refuse_readable()
        submitters = {name: seen.submitter for name, seen in self._gate.submitters().items()}
        remembered = any(each.policy is not None for each in submitters.values())
        new = begun(Known(submitters, seed, uid), snapshot.now)
        if self._documents.swap(LEDGER, snapshot.version, encode(new)) is None:
            raise Conflict(
                "request_invalid",
                "somebody else wrote the ledger at the same moment",
                "look at it with `blastyard gate status`",
            )
        return Rebuilt(new.policy, remembered)


class _Format(msgspec.Struct):
    format: int = 0


def _is_readable(body: bytes) -> bool:
    """Raises ``Unavailable('ledger_unreadable')`` for what a newer blastyard can read."""
    try:
        decode_ledger(body)
    except Unavailable as error:
        if is_newer(body):
            raise Unavailable(error.code, error.message, NEWER) from error
        return False
    return True


def is_newer(body: bytes) -> bool:
    """Whether the text of a ledger says that it has a format which only others can read."""
    try:
        return msgspec.json.decode(body, type=_Format).format > FORMAT
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def chosen(text: str, names: Iterable[str], what: str) -> str:
    """The one of ``names`` that ``text`` is, or the beginning of. Raises ``NotFound``."""
    known = sorted(set(names))
    if text in known:
        return text
    found = [name for name in known if text and name.startswith(text)]
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFound("search_unknown", f"{text!r} begins {_listed(found)}", "give more of the id")
    step = f"there is {_listed(known)}" if known else f"there is no {what} at all"
    raise NotFound("search_unknown", f"{text!r} is no {what} here", step)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _not_waiting(search: str) -> CallerMistake:
    message = f"{search} has no place in the queue"
    return CallerMistake("search_finished", message, "only waiting searches can be set aside")
