"""Wrong rules of the submit lease and of run slots on a cluster."""

# ruff: noqa: ARG005  (a wrong rule ignores what the right one looks at)
from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from blastyard.admission import lease as leases
from blastyard.admission.census import Census
from blastyard.admission.hold import Reserved
from blastyard.admission.ledger import Fence, Hold, Ledger
from blastyard.admission.outcome import Granted
from blastyard.admission.timing import Timings
from blastyard.kube.outcome import Object
from blastyard.testing.cluster.mutants import cluster_mutant as _mutant
from blastyard.testing.cluster.mutants import nothing as _nothing

# -- the submit lease ------------------------------------------------------------------------------

_mutant(
    "takeover without waiting",
    "a blastyard's lease is taken after one second of silence",
    "admission.lease:_judge_blastyard",
    lambda _: (
        lambda seen, timings: (
            leases.Free(seen.stamped_at)
            if seen.unchanged_for >= timedelta(seconds=1)
            else leases.Held(seen.lease.holder_identity, None, None)
        )
    ),
)
_mutant(
    "release without a holder check",
    "whoever leaves clears the lease, whose ever it is",
    "admission.lease:released",
    lambda _: lambda seen, holder: leases.SubmitLease(),
)
_mutant(
    "trust for ever",
    "a stay is trusted however long ago its lease was renewed",
    "admission.stay:Stay.is_trusted",
    lambda _: property(lambda self: True),
)
_mutant(
    "trust beyond takeover",
    "the guardian's deadline lies behind the moment at which others may take over",
    "admission.lease:trusted_until",
    lambda _: (
        lambda asked_at, timings: asked_at + (timings.takeover + timings.margin).total_seconds()
    ),
)
_mutant(
    "no guardian",
    "a command is not ended at its deadline",
    "testing.cluster.command:SubmitCommand._look_at_deadline",
    lambda _: _nothing,
)
_mutant(
    "a clock that is ahead",
    "the server's clock is taken for later than it can be",
    "kube.clock:ServerClock.now",
    lambda right: lambda self, at: right(self, at) + timedelta(seconds=3),
)
_mutant(
    "stamps in whole seconds",
    "a stamp is taken for the beginning of its second",
    "admission.kubernetes.codec:stamped_at",
    lambda _: lambda stamp, now: stamp,
)


def _without_uid(right: Any) -> Any:
    def writing(self: Any, method: str, resource: Any, new: Object, name: str = "") -> Any:
        metadata = {key: one for key, one in new["metadata"].items() if key != "uid"}
        return right(self, method, resource, {**new, "metadata": metadata}, name)

    return writing


_mutant(
    "a clock of its own on the lease",
    "who is inside writes when by a clock of its own, which is twenty minutes behind",
    "admission.lease:format_time",
    lambda right: lambda at: right(at - timedelta(minutes=20)),
)
_mutant(
    "no uid in a write",
    "a lease that was deleted is made again by whoever held it",
    "kube.client:Client._writing",
    _without_uid,
)
_mutant(
    "another's lease adopted",
    "a command started again takes up the attempts of the one before under the same numbers",
    "service.submitting:Submitting.__init__",
    lambda right: lambda self, *given, **named: right(self, *given, **{**named, "first": 0}),
)
_mutant(
    "markers not asserted",
    "who takes the lease from a dead holder does not look what it has shown to peers",
    "admission.stay:Stay.assert_markers",
    lambda _: _nothing,
)

# -- run slots -------------------------------------------------------------------------------------

_mutant(
    "no recount",
    "a reserved hold is resumed whatever has started meanwhile",
    "admission.census:room_to_resume",
    lambda _: lambda ledger, census, search: True,
)
_mutant(
    "holds only",
    "what runs without a hold is not counted",
    "admission.census:uncovered",
    lambda _: lambda holds, census: frozenset(),
)
_mutant(
    "census only",
    "what has a hold and cannot be seen yet is not counted",
    "admission.census:occupied",
    lambda _: lambda holds, census: census.families,
)
_mutant(
    "cached census",
    "a slot is granted on what was seen lately",
    "admission.kubernetes.jobs:KubernetesCensus.read",
    lambda right: lambda self, **how: self.glance() if self._follows() else right(self, **how),
)


def _at_once(right: Any) -> Any:
    def judged(*given: Any) -> Any:
        return right(*given[:-1], replace(given[-1], settle=timedelta(microseconds=1)))

    return judged


_mutant(
    "no settle after a failure",
    "the slot of a failed command is free at once, though a write of it may still land",
    "admission.ending:settled",
    _at_once,
)
_mutant(
    "unseen is ended",
    "a search that was submitted and is not seen has ended",
    "admission.ending:ended",
    _at_once,
)


def _alone_for_hours(right: Any) -> Any:
    def lone(ledger: Ledger, census: Census, now: datetime, timings: Timings) -> Any:
        return dict.fromkeys(right(ledger, census, now, timings), now - timings.forgotten)

    return lone


_mutant(
    "lone is phantom",
    "a finalizer without companions is not counted, though it may be merging",
    "admission.census:lone_since",
    _alone_for_hours,
)
_mutant(
    "a partial submission is adopted",
    "what a dead command has left half done is taken for its submission",
    "admission.census:Census.has_finalizer",
    lambda _: lambda self, name: name in self.sightings,
)
_mutant(
    "no fence check",
    "a confirmation counts for whatever hold the search has now",
    "admission.hold:_mine",
    lambda _: lambda ledger, search, fence: ledger.holds.get(search),
)
_mutant(
    "fence without uid",
    "a fence of a ledger that was lost is as good as one of its successor",
    "admission.hold:_mine",
    lambda _: (
        lambda ledger, search, fence: (
            ledger.holds.get(search)
            if search in ledger.holds and ledger.holds[search].fence == fence.number
            else None
        )
    ),
)
_mutant(
    "fence from the beginning",
    "a ledger in the place of a lost one counts from 0 again, under the old name",
    "admission.restoration:begun",
    lambda right: (
        lambda known, now: msgspec.structs.replace(right(known, now), uid="ledger", fence=0)
    ),
)


def _under_the_old_fence(right: Any) -> Any:
    def resume(ledger: Ledger, hold: Hold, *rest: Any) -> Any:
        outcome = right(ledger, hold, *rest)
        if not isinstance(outcome, Reserved):
            return outcome
        holds = {
            name: msgspec.structs.replace(one, fence=min(one.fence, hold.fence))
            if one.ticket == hold.ticket
            else one
            for name, one in outcome.ledger.holds.items()
        }
        after = msgspec.structs.replace(outcome.ledger, holds=holds)
        return Reserved(after, Granted(Fence(ledger.uid, hold.fence)))

    return resume


_mutant(
    "resumed under its old fence",
    "an attempt that resumes a hold has the fence of the attempt before it",
    "admission.hold:_resume",
    _under_the_old_fence,
)


def _whoever_holds(_: Any) -> Any:
    def due(self: Any) -> Any:
        found = self._gate.due()
        if self._wish.search in found.waiting:
            return found
        self._gate.give_back(self._wish.search)
        self._gate.publish([self._wish])
        return self._gate.due()

    return due


_mutant(
    "another's hold given back",
    "a command started again takes its predecessor's run slot for its own",
    "service.passage:Passage._due",
    _whoever_holds,
)
_mutant(
    "nobody's turn",
    "whoever is quickest goes first",
    "admission.order:_in_turn",
    lambda _: _quickest,
)


def _quickest(place: Any, ahead: Any, *_: Any) -> Any:
    from blastyard.admission.order import Turn  # noqa: PLC0415  (what is being replaced is in it)

    return Turn(place.position, tuple(other.search for other in ahead))
