"""What goes wrong in a run, done to its processes and to its API server."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from threading import Event, Lock, Thread
from typing import Final

from blastyard.domain.clock import SystemClock
from blastyard.testing.cluster_soak.actor import Actor
from blastyard.testing.cluster_soak.plan import INSIDE, Fault, Trouble
from blastyard.testing.cluster_soak.stage import Stage
from blastyard.testing.proxy_fault import Fault as FaultKind
from blastyard.testing.proxy_fault import (
    HalfOpen,
    LostAnswer,
    LostRequest,
    Reset,
    Rule,
    html,
    too_many,
    unavailable,
)

_INSIDE_SECONDS: Final = 15.0
"""How long somebody is waited for who is inside Gate A."""
_LOOK: Final = 0.05
_OPERATOR_TRIES: Final = 6


def _losses(chance: Random) -> list[Rule]:
    writes = "POST|PUT|PATCH|DELETE"
    faults: list[tuple[FaultKind, str, str]] = [
        (LostAnswer(), writes, ""),
        (LostRequest(), writes, ""),
        (too_many(), ".*", ""),
        (html(), ".*", ""),
        (unavailable(), writes, ""),
        (Reset(after=40), "GET", "limit="),
        (HalfOpen(after=2), "GET", "watch="),
    ]
    chosen = chance.sample(faults, 4)
    return [
        Rule(fault, verb, path, skip=chance.randrange(4), times=chance.choice((1, 1, 2, 4)))
        for fault, verb, path in chosen
    ]


class Weather:
    """Lets things happen at their times. ``over`` ends all of it."""

    def __init__(self, stage: Stage) -> None:
        self.counts: Counter[str] = Counter()
        self.over = Event()
        self._stage = stage
        self._clock = SystemClock()
        self._began = self._clock.monotonic()
        self._server = Lock()
        self._threads: list[Thread] = []

    def at(self, seconds: float, act: Callable[[], None]) -> None:
        """Do it so many seconds after the beginning, unless it is over by then."""

        def wait_and_act() -> None:
            if not self.over.wait(max(0.0, self._began + seconds - self._clock.monotonic())):
                act()

        thread = Thread(target=wait_and_act, daemon=True)
        self._threads.append(thread)
        thread.start()

    def clear(self) -> None:
        """From now on nothing goes wrong; returns when everything works again."""
        self.over.set()
        for thread in self._threads:
            thread.join()
        for proxy in self._stage.proxies.values():
            proxy.heal()

    def strike(self, fault: Fault) -> None:
        """One fault, from its beginning to its end."""
        match fault.trouble:
            case Trouble.KILL:
                self._to_somebody(fault, self._kill)
            case Trouble.STOP:
                self._to_somebody(fault, self._stop)
            case Trouble.CUT:
                self._to_somebody(fault, self._cut)
            case Trouble.LOSSES:
                self._to_somebody(fault, self._lose)
            case Trouble.PAUSE:
                self._pause(fault.seconds)
            case Trouble.RESTART:
                self._restart()
            case Trouble.LEDGER:
                self._lose_ledger()
            case Trouble.LEASE:
                self._lose_lease()

    # -- to one process --------------------------------------------------------------------------

    def _to_somebody(self, fault: Fault, act: Callable[[Actor, float], None]) -> None:
        actor = self._target(fault.target)
        if actor is None or not actor.fate.acquire(blocking=False):
            self.counts["missed"] += 1
            return
        try:
            if actor.is_running:
                self.counts[fault.trouble.value] += 1
                self._note(fault, actor.name)
                act(actor, fault.seconds)
        finally:
            actor.fate.release()

    def _target(self, name: str) -> Actor | None:
        if name != INSIDE:
            return self._stage.actors.get(name)
        until = self._clock.monotonic() + _INSIDE_SECONDS
        while self._clock.monotonic() < until and not self.over.wait(_LOOK):
            with suppress(OSError):
                holder = (self._stage.lease().get("spec") or {}).get("holderIdentity") or ""
                found = self._stage.owner_of(holder)
                if found is not None:
                    return found
        return None

    def _note(self, fault: Fault, name: str) -> None:
        detail = {"trouble": fault.trouble.value, "seconds": fault.seconds}
        self._stage.say(name, "fault", "", **detail)

    def _kill(self, actor: Actor, seconds: float) -> None:
        actor.kill()
        if not actor.returns:
            for search in actor.searches():
                self._stage.say(actor.name, "ended", search, outcome="killed")
            return
        self.over.wait(seconds)
        actor.start()

    def _stop(self, actor: Actor, seconds: float) -> None:
        actor.stand_still(self.over, seconds)

    def _cut(self, actor: Actor, seconds: float) -> None:
        proxy = self._stage.proxies[actor.name]
        proxy.cut()
        self.over.wait(seconds)
        proxy.heal()

    def _lose(self, actor: Actor, seconds: float) -> None:
        """The same span loses the same requests, counted from its beginning."""
        plan = self._stage.proxies[actor.name].plan
        chance = Random(f"losses {seconds}")
        for rule in _losses(chance):
            plan.add(rule)
        self.over.wait(seconds)
        plan.clear()

    # -- to the API server -----------------------------------------------------------------------

    def _pause(self, seconds: float) -> None:
        with self._server:
            self.counts["pause"] += 1
            self._stage.say("server", "fault", "", trouble="pause", seconds=seconds)
            self._stage.plane.pause_api()
            self.over.wait(seconds)
            self._stage.plane.resume_api()

    def _restart(self) -> None:
        with self._server:
            self.counts["restart"] += 1
            self._stage.say("server", "fault", "", trouble="restart")
            self._stage.plane.restart_api()

    def _lose_ledger(self) -> None:
        with self._server, suppress(OSError):
            if self._stage.plane.admin.send("DELETE", self._stage.ledger()).ok:
                self.counts["ledger"] += 1
                self._stage.say("server", "fault", "", trouble="ledger")

    def _lose_lease(self) -> None:
        """Deleted only as it stands while nobody is inside: whoever deletes it under a holder
        has let a second one in by hand."""
        until = self._clock.monotonic() + _INSIDE_SECONDS
        while self._clock.monotonic() < until and not self.over.wait(_LOOK / 2):
            with self._server, suppress(OSError):
                lease = self._stage.lease()
                if not lease or (lease.get("spec") or {}).get("holderIdentity"):
                    continue
                known = {key: lease["metadata"][key] for key in ("uid", "resourceVersion")}
                wish = {"preconditions": known}
                if self._stage.plane.admin.send("DELETE", self._stage.submit_lease(), wish).ok:
                    self.counts["lease"] += 1
                    self._stage.say("server", "fault", "", trouble="lease")
                    return
        self.counts["missed"] += 1

    # -- the operator ----------------------------------------------------------------------------

    def change_ceiling(self, ceiling: int) -> None:
        """As an operator does it, again until it is done."""
        stage = self._stage
        kubeconfig = stage.direct("operator", stage.token)
        for _ in range(_OPERATOR_TRIES):
            done = subprocess.run(
                [sys.executable, "-m", "blastyard", "gate", "ceiling", str(ceiling)],
                env=stage.environment(kubeconfig, "operator"),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=60,
                check=False,
            )
            if done.returncode == 0:
                self.counts["ceilings changed"] += 1
                return
            self.over.wait(1.0)
