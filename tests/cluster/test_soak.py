"""The soak itself, once and short: real processes, one of them killed inside Gate A."""

from __future__ import annotations

import secrets
from pathlib import Path

from blastyard.testing.cluster_soak.plan import (
    INSIDE,
    SHORT,
    Fault,
    Order,
    Plan,
    Program,
    Script,
    Size,
    Trouble,
    Worker,
    make,
)
from blastyard.testing.cluster_soak.run import run
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.recorded.rule import Terms
from blastyard.testing.recorded.verdict import check_recording

TAKEOVER = SHORT.takeover.total_seconds()


def order(
    search: str, script: Script = Script.COMPLETE, delay: float = 0.2, at: float = 0.0
) -> Order:
    return Order(search, "ada", 1, script, delay, 1.0, at)


def test_workers_commands_and_a_stranger_outlive_a_kill_inside_gate_a(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    """The first submission is slow, and its process is killed in the midst of it. It stays away
    for so long that others take over."""
    plan = Plan(
        seed=0,
        seconds=12.0,
        ceiling=2,
        workers=(
            Worker("w0", (order("soak-aaaaaaaa01", Script.SLOW, 4.0), order("soak-aaaaaaaa02"))),
            Worker("w1", (order("soak-bbbbbbbb01"),)),
        ),
        commands=(order("soak-cccccccc01", Script.MINT, at=2.0),),
        programs=(Program("service", "service", 1, 0.0),),
        ceilings=((12.0, 3),),
        faults=(Fault(1.0, Trouble.KILL, INSIDE, 9.0),),
    )

    folder, namespace = tmp_path / "run", f"soak-{secrets.token_hex(4)}"
    outcome = run(plan, control_plane, folder, namespace=namespace)

    assert outcome.is_clean, f"{outcome.verdict}\n" + "\n".join(outcome.leftovers)
    assert outcome.faults["kill"] == outcome.faults["processes killed"] == 1
    assert outcome.verdict.is_whole
    assert outcome.verdict.counts["accepted"] == outcome.verdict.counts["ended"] == 5
    assert outcome.verdict.counts["takeovers"] >= 1
    stricter = check_recording(folder, namespace, Terms(takeover=60.0))
    assert "taken over too early" in {each.rule for each in stricter.violations}


def test_a_seed_draws_the_same_plan_again_and_other_seeds_draw_others() -> None:
    size = Size()
    assert make(7, "mixed", size, TAKEOVER) == make(7, "mixed", size, TAKEOVER)
    assert make(7, "mixed", size, TAKEOVER) != make(8, "mixed", size, TAKEOVER)
    assert make(7, "calm", size, TAKEOVER).faults == ()
