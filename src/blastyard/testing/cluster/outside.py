"""What comes over a simulated cluster from outside: operators, clocks, hands, strangers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from blastyard.admission.ledger import HoldState
from blastyard.kube.rbac import ledger_name, submit_lease_name
from blastyard.kube.wire import Call
from blastyard.testing.cluster.schedule import Event, Happening
from blastyard.testing.cluster.service import Operator, Service
from blastyard.testing.cluster.wire import NAMESPACE, ObservedWire
from blastyard.testing.schedule import Kind, Role, order_name

if TYPE_CHECKING:
    from blastyard.testing.cluster.world import ClusterWorld

OPERATOR_SLOT: Final = 90
_MACHINE: Final = 90
_KINDS: Final = ("leases", "jobs", "configmaps")


class Outside:
    """Does the events of a schedule."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self._errands = 0
        self._hand = ObservedWire(world, None, "kubectl-edit")
        self._under_way: list[Operator] = []

    def operator(self) -> Operator:
        """A short process of an operator."""
        self._errands += 1
        operator = Operator(self._world, OPERATOR_SLOT, Role(Kind.COMMAND, _MACHINE), self._errands)
        self._world.everyone[operator.name] = operator
        self._under_way.append(operator)
        return operator

    def put_right(self, ceiling: int) -> None:
        """What operators have not done by now they leave undone; nothing stays closed or parked."""
        for errand in self._under_way:
            if not errand.dead:
                errand.crash(0.0)

        def open_up(errand: object) -> None:
            assert isinstance(errand, Operator)
            errand.gate.change_policy(errand.name, ceiling=ceiling)
            for name in list(errand.gate.ledger().tickets):
                errand.gate.unpark(name)

        self.operator().run(open_up, tries=200)

    def do(self, event: Event) -> None:
        """Do one, now."""
        world = self._world
        world.note(f"{event.what} {event.target} {event.value}")
        match event.what:
            case Happening.CEILING | Happening.PARK:
                self.operator().run(lambda operator: self._ask(operator, event))
            case Happening.LOSE_LEDGER:
                self._delete("core", "configmaps", ledger_name(NAMESPACE))
            case Happening.LOSE_LEASE:
                self._delete("coordination.k8s.io", "leases", submit_lease_name(NAMESPACE))
            case Happening.LOSE_FINALIZER | Happening.PEER_CANCEL:
                self._cancel(event)
            case Happening.CLOCK:
                world.clock_was_set = True
                world.clock.offset += event.value
            case Happening.DOWN:
                world.down_until = world.now + event.value
            case Happening.COMPACT | Happening.SILENCE | Happening.CUT | Happening.DROP:
                self._to_watches(event)
            case Happening.FREEZE | Happening.CRASH | Happening.STOP:
                self._to_process(event)
            case Happening.STRANGER_FREEZE | Happening.STRANGER_CRASH:
                self._to_stranger(event)

    def _ask(self, errand: object, event: Event) -> None:
        assert isinstance(errand, Operator)
        if event.what is Happening.CEILING:
            errand.gate.change_policy(errand.name, ceiling=int(event.value))
        else:
            errand.gate.park(order_name(event.target), errand.name)

    # -- by hand -------------------------------------------------------------------------------

    def _delete(self, group: str, plural: str, name: str) -> None:
        root = "/api/v1" if group == "core" else f"/apis/{group}/v1"
        self._hand.send(Call("DELETE", f"{root}/namespaces/{NAMESPACE}/{plural}/{name}"))

    def _cancel(self, event: Event) -> None:
        """A search of ours that runs in the cluster: its companions, or its finalizer."""
        world = self._world
        ledger = world.observer.ledger_rules.ledger
        confirmed = {
            name
            for name, hold in (ledger.holds if ledger is not None else {}).items()
            if hold.state is HoldState.SUBMITTED and hold.marked
        }
        running = sorted(
            id_
            for id_ in {id_ for _, id_ in world.live_jobs()}
            if id_ in world.ids and world.slot_of(id_) in confirmed
        )
        if not running:
            return
        id_ = running[event.target % len(running)]
        apps = "finalizer" if event.what is Happening.LOSE_FINALIZER else "blast,submit"
        world.note(f"{event.what}: {id_}")
        world.observer.cancelled |= {world.ids[id_], world.slot_of(id_), id_}
        if event.what is Happening.PEER_CANCEL:
            world.zombies.add(id_)
        self._hand.send(
            Call(
                "DELETE",
                f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs",
                {"labelSelector": f"app in ({apps}),elb-job-id={id_}"},
                json.dumps({"propagationPolicy": "Background"}).encode(),
            )
        )

    def _to_watches(self, event: Event) -> None:
        watches = self._world.api.watches
        plural = _KINDS[event.target % len(_KINDS)]
        match event.what:
            case Happening.COMPACT:
                self._world.api.compact()
                self._world.api.expire_pages()
                watches.cut()
            case Happening.SILENCE:
                watches.silence(plural)
            case Happening.CUT:
                watches.cut(plural)
            case _:
                watches.drop_next(plural, count=max(1, int(event.value)))

    # -- processes -----------------------------------------------------------------------------

    def _to_process(self, event: Event) -> None:
        actor = self._world.slots.get(event.target)
        if actor is None or actor.dead:
            return
        if event.what is Happening.FREEZE:
            actor.frozen_until = max(actor.frozen_until, self._world.now + event.value)
        elif event.what is Happening.CRASH:
            actor.crash(event.value)
        elif isinstance(actor, Service):
            actor.stop()
        else:
            stop = getattr(actor, "stop", None)
            if stop is not None:
                stop()

    def _to_stranger(self, event: Event) -> None:
        strangers = list(self._world.strangers.values())
        if not strangers:
            return
        stranger = strangers[event.target % len(strangers)]
        if event.what is Happening.STRANGER_FREEZE:
            stranger.frozen_until = max(stranger.frozen_until, self._world.now + event.value)
        else:
            stranger.crash(event.value)
