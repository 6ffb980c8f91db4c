"""What comes over a simulated cluster from outside: operators, clocks, hands, strangers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from blastyard.admission.ledger import HoldState
from blastyard.kube.rbac import ledger_name, submit_lease_name
from blastyard.kube.resource import CONFIGMAPS, JOBS, LEASES, Resource
from blastyard.kube.wire import Call
from blastyard.testing.cast import Errand
from blastyard.testing.cluster.service import Operator
from blastyard.testing.cluster.wire import NAMESPACE, ObservedWire
from blastyard.testing.outside import OPERATOR_SLOT, Outside
from blastyard.testing.schedule import Deed, Intervention, Role, order_name

if TYPE_CHECKING:
    from blastyard.testing.cluster.world import ClusterWorld

_MACHINE: Final = 90
_KINDS: Final = ("leases", "jobs", "configmaps")


class ClusterOutside(Outside):
    """Does the interventions of a schedule."""

    _world: ClusterWorld

    def __init__(self, world: ClusterWorld) -> None:
        super().__init__(world)
        self._hand = ObservedWire(world, None, "kubectl-edit")

    def errand(self, account: int = _MACHINE) -> Errand:
        """A short process of an operator, on a machine of its own."""
        return super().errand(account)

    def _operator(self, role: Role, number: int) -> Errand:
        return Operator(self._world, OPERATOR_SLOT, role, number)

    def _do(self, deed: Intervention) -> None:
        match deed.deed:
            case Deed.LOSE_LEDGER:
                self._delete(CONFIGMAPS, ledger_name(NAMESPACE))
            case Deed.LOSE_LEASE:
                self._delete(LEASES, submit_lease_name(NAMESPACE))
            case Deed.LOSE_FINALIZER | Deed.PEER_CANCEL:
                self._cancel(deed)
            case Deed.COMPACT | Deed.SILENCE | Deed.CUT | Deed.DROP:
                self._to_watches(deed)
            case Deed.STRANGER_FREEZE | Deed.STRANGER_CRASH:
                self._to_stranger(deed)
            case _:
                super()._do(deed)

    def _ask(self, errand: Errand, deed: Intervention) -> None:
        if deed.deed is Deed.PARK:
            errand.gate.park(order_name(deed.target), errand.name)
        else:
            super()._ask(errand, deed)

    # -- by hand -------------------------------------------------------------------------------

    def _delete(self, resource: Resource, name: str) -> None:
        self._hand.send(Call("DELETE", resource.path(NAMESPACE, name)))

    def _cancel(self, deed: Intervention) -> None:
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
        id_ = running[deed.target % len(running)]
        apps = "finalizer" if deed.deed is Deed.LOSE_FINALIZER else "blast,submit"
        world.note(f"{deed.deed}: {id_}")
        world.observer.cancelled |= {world.ids[id_], world.slot_of(id_), id_}
        if deed.deed is Deed.PEER_CANCEL:
            world.zombies.add(id_)
        self._hand.send(
            Call(
                "DELETE",
                JOBS.path(NAMESPACE),
                {"labelSelector": f"app in ({apps}),elb-job-id={id_}"},
                json.dumps({"propagationPolicy": "Background"}).encode(),
            )
        )

    def _to_watches(self, deed: Intervention) -> None:
        watches = self._world.api.watches
        plural = _KINDS[deed.target % len(_KINDS)]
        match deed.deed:
            case Deed.COMPACT:
                self._world.api.compact()
                self._world.api.expire_pages()
                watches.cut()
            case Deed.SILENCE:
                watches.silence(plural)
            case Deed.CUT:
                watches.cut(plural)
            case _:
                watches.drop_next(plural, count=max(1, int(deed.value)))

    def _to_stranger(self, deed: Intervention) -> None:
        strangers = list(self._world.strangers.values())
        if not strangers:
            return
        stranger = strangers[deed.target % len(strangers)]
        if deed.deed is Deed.STRANGER_FREEZE:
            stranger.frozen_until = max(stranger.frozen_until, self._world.now + deed.value)
        else:
            stranger.crash(deed.value)
