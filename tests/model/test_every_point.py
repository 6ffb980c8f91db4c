"""One trouble at every single point of small schedules where others could act."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from model_stage import calm
from verdict_stage import story

from blastyard.testing.mutant import applied, mutants
from blastyard.testing.schedule import (
    Deed,
    Fault,
    Intervention,
    Kind,
    Order,
    Role,
    Schedule,
    Trouble,
    order_name,
)
from blastyard.testing.simulation import Verdict
from blastyard.testing.simulator import run

TROUBLES = (
    Fault(Trouble.CRASH, 2.0),
    Fault(Trouble.FREEZE, 31.0),
    Fault(Trouble.DELAY, 35.0),
    Fault(Trouble.LOST_ANSWER),
    Fault(Trouble.CONFLICT),
    Fault(Trouble.LATE, 3.0),
)


def _order(number: int, slot: int, seconds: float, at: float = 0.0) -> Order:
    return Order(order_name(number), slot, at, f"u{number % 2}", 1, seconds)


def _schedule(
    kinds: tuple[Kind, ...],
    orders: tuple[Order, ...],
    deeds: tuple[Intervention, ...] = (),
    ceiling: int = 1,
) -> Schedule:
    scene = calm(ceiling, tuple(Role(kind) for kind in kinds), orders)
    return replace(
        scene,
        seed=0,
        picks=0,
        stickiness=0.9,
        interventions=deeds,
        trouble_until=40.0,
        faults={},
        kill_delay=1.0,
    )


SCENES = {
    "two services": _schedule(
        (Kind.SERVE, Kind.SERVE), (_order(0, 0, 3.0), _order(1, 1, 3.0), _order(2, 1, 0.3))
    ),
    "a command behind a search": _schedule(
        (Kind.SEARCH, Kind.COMMAND), (_order(0, 0, 3.0), _order(1, 1, 3.0))
    ),
    "a ledger lost while two run": _schedule(
        (Kind.SERVE, Kind.COMMAND),
        (_order(0, 0, 8.0), _order(1, 1, 8.0), _order(2, 0, 2.0)),
        (Intervention(4.0, Deed.LOSE_LEDGER),),
        ceiling=2,
    ),
    "a search delivered twice, and a ceiling lowered": _schedule(
        (Kind.SERVE, Kind.TWIN),
        (_order(0, 0, 50.0, at=1.0), _order(1, 1, 5.0)),
        (Intervention(30.5, Deed.CEILING, value=1.0),),
        ceiling=2,
    ),
    "a cancelled search": _schedule(
        (Kind.SERVE, Kind.SEARCH),
        (_order(0, 0, 5.0), _order(1, 1, 5.0)),
        (Intervention(0.0004, Deed.CANCEL, 0), Intervention(2.0, Deed.CANCEL, 1)),
    ),
    "a service that stops": _schedule(
        (Kind.SERVE, Kind.SERVE),
        (_order(0, 0, 5.0), _order(1, 0, 5.0)),
        (Intervention(1.0, Deed.STOP, 0),),
    ),
}


def _troubled(
    scene: Schedule, troubles: tuple[Fault, ...] = TROUBLES, every: int = 1
) -> Iterator[Verdict[Schedule]]:
    """The scene with each trouble at each of its points, or with every second, third … of them:
    at the next point with the next."""
    points = {slot: count for slot, count in run(scene).calls.items() if slot < len(scene.roles)}
    for slot, count in points.items():
        for point in range(1, count + 1):
            for fault in troubles[point % every :: every]:
                yield run(replace(scene, faults={(slot, point): fault}))


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_without_trouble_comes_to_its_end(name: str) -> None:
    verdict = run(SCENES[name])
    assert verdict.violation is None, story(verdict)
    assert verdict.grants >= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_no_single_trouble_at_any_point_breaks_an_invariant(
    name: str, request: pytest.FixtureRequest
) -> None:
    """At every point one or two of the six troubles; all with ``scripts/soak --deaths``."""
    every = 1 if request.config.getoption("every_death") else 4
    for verdict in _troubled(SCENES[name], every=every):
        assert verdict.violation is None, story(verdict)


def test_no_lost_answer_at_any_point_breaks_an_invariant() -> None:
    scene = SCENES["a command behind a search"]
    for verdict in _troubled(scene, (Fault(Trouble.LOST_ANSWER),)):
        assert verdict.violation is None, story(verdict)


@pytest.mark.slow
def test_a_resumption_that_counts_only_older_holds_is_seen() -> None:
    """Fault B9: a ceiling was lowered while a reservation stood still."""
    with applied(mutants()["only older holds"]):
        scene = SCENES["a search delivered twice, and a ceiling lowered"]
        freezes = (Fault(Trouble.FREEZE, 31.0),)
        verdicts = _troubled(scene, freezes)
        seen = {verdict.violation.rule for verdict in verdicts if verdict.violation}
    assert "over the ceiling" in seen
