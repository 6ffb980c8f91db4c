"""Who cannot reach its own store counts as silent: what it ran it could not claim."""

from __future__ import annotations

import pytest
from admission_stage import ME, TIMINGS, Yard, inside_with_ticket

from blastyard.admission.port import SUBMITTER
from blastyard.domain.errors import Unavailable


def unreachable() -> None:
    raise Unavailable("store_unavailable", "no answer")


def test_no_sign_of_life_is_given_while_the_store_does_not_answer() -> None:
    yard = Yard()
    gate, other = yard.gate(), yard.gate("serve-2")
    gate.beat()
    version = yard.documents.read(SUBMITTER + ME).version
    gate.reach = unreachable
    yard.clock.leap(TIMINGS.lapse.total_seconds())

    with pytest.raises(Unavailable):
        gate.beat()

    assert yard.documents.read(SUBMITTER + ME).version == version
    assert not other.submitters()[ME].is_alive(TIMINGS)


def test_who_is_inside_gate_a_goes_on_being_so() -> None:
    """Its command runs under the deadline that the lease gives it."""
    yard = Yard()
    gate = yard.gate()
    stay = inside_with_ticket(gate)
    deadline = stay.deadline
    gate.reach = unreachable
    yard.clock.leap(5.0)

    with pytest.raises(Unavailable):
        gate.beat()

    assert stay.deadline == deadline + 5.0
