"""A Job without purpose, written so that a list of Jobs need not wait.

From Kubernetes 1.31 on, a consistent list is answered from the API server's watch cache, once that
has caught up with etcd. Nothing tells the cache that it has, until a Job changes or the next of its
inquiries, 100 ms apart, is answered: so a list right after the write of anything else takes 50 ms
on average. A Job written just before it takes 6 ms, and the list then as many.

Only latency depends on it. What fails here is left undone, and where lists are quick it is not
written at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from blastyard.domain.errors import Misconfigured, Unavailable
from blastyard.kube.client import Client
from blastyard.kube.outcome import Absent, Object
from blastyard.kube.resource import JOBS

NAME: Final = "blastyard-pulse"
SLOW_SECONDS: Final = 0.025
"""A list that takes longer than this probably waited."""
LISTS: Final = 200
"""After so many lists with a pulse one goes without, to see whether it is still worthwhile."""

_BEAT: Final = "blastyard/beat"
_ABOUT: Final = "blastyard/about"


def _job(beat: str) -> Object:
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [{"name": "none", "image": "localhost/none:1"}],
    }
    about = "never runs; it is changed so that lists of Jobs are quick"
    return {
        "metadata": {"name": NAME, "annotations": {_BEAT: beat, _ABOUT: about}},
        "spec": {"suspend": True, "template": {"spec": pod}},
    }


class Pulse:
    """Goes before the lists that somebody waits for."""

    def __init__(self, client: Client, monotonic: Callable[[], float]) -> None:
        self._client = client
        self._monotonic = monotonic
        self._left = 0
        self._began = 0.0

    def before(self) -> None:
        """To be called before such a list."""
        if self._left:
            self._left -= 1
            self._beat()
        self._began = self._monotonic()

    def after(self) -> None:
        """To be called when the list has been answered."""
        if not self._left and self._monotonic() - self._began > SLOW_SECONDS:
            self._left = LISTS

    def _beat(self) -> None:
        beat = str(self._monotonic())
        try:
            change = {"metadata": {"annotations": {_BEAT: beat}}}
            if isinstance(self._client.patch(JOBS, NAME, change), Absent):
                self._client.create(JOBS, _job(beat))
        except (Unavailable, Misconfigured):
            self._left = 0
