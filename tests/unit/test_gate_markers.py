"""A run slot that cannot be shown to peers is not kept."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from blastyard.admission.census import NothingForeign
from blastyard.admission.gate import Gate
from blastyard.admission.hold import Attempt
from blastyard.admission.ledger import Policy, Submitter
from blastyard.admission.markers import NoMarkers
from blastyard.admission.marking import Put
from blastyard.admission.memory import MemoryDocumentStore
from blastyard.admission.outcome import Granted
from blastyard.admission.outlook import GateSettings, Surroundings
from blastyard.admission.stay import Stay
from blastyard.admission.ticket import Wish
from blastyard.domain.errors import Unavailable

NOW = datetime(2031, 5, 1, tzinfo=UTC)


class Refusing(NoMarkers):
    """Markers that cannot be made while it says so."""

    def __init__(self) -> None:
        self.refuses = True

    def put(self, put: Put, *, holder: str = "", fence: str = "") -> None:
        if self.refuses:
            raise Unavailable("cluster_unavailable", "502 Bad Gateway")


def gate_with(markers: Refusing) -> Gate:
    around = Surroundings(
        lambda: 100.0, lambda _: False, NothingForeign(), lambda: "uid", tuple, markers
    )
    me = Submitter("serve-1", "serve", 0)
    documents = MemoryDocumentStore(lambda: NOW)
    gate = Gate(documents, me, GateSettings(Policy(), shared=True), around)
    gate.beat()
    return gate


def entered(gate: Gate, attempt: int) -> Stay:
    stay = gate.enter("s1", attempt)
    assert isinstance(stay, Stay)
    return stay


def test_a_slot_whose_stand_in_cannot_be_put_goes_back_to_its_place_in_the_queue() -> None:
    markers = Refusing()
    gate = gate_with(markers)
    gate.publish([Wish("s1", "ada", 1)])
    place = gate.ledger().tickets["s1"].sequence

    stay = entered(gate, 1)
    with pytest.raises(Unavailable):
        stay.reserve(Attempt("s1", 1, gate.me.name))
    gate.leave(stay)

    assert not gate.ledger().holds
    assert gate.ledger().tickets["s1"].sequence == place
    markers.refuses = False
    assert isinstance(entered(gate, 2).reserve(Attempt("s1", 2, gate.me.name)), Granted)


def test_a_reserved_slot_of_an_earlier_attempt_is_kept_though_it_cannot_be_shown_again() -> None:
    """Something of the earlier attempt may still arrive."""
    markers = Refusing()
    markers.refuses = False
    gate = gate_with(markers)
    gate.publish([Wish("s1", "ada", 1)])
    first = entered(gate, 1)
    assert isinstance(first.reserve(Attempt("s1", 1, gate.me.name)), Granted)
    gate.leave(first)

    markers.refuses = True
    second = entered(gate, 2)
    with pytest.raises(Unavailable):
        second.reserve(Attempt("s1", 2, gate.me.name))

    assert gate.ledger().holds["s1"].attempt == 2
