"""What the `gate` commands look at and act on: a shared namespace, or this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

from blastyard.cli.session import visited
from blastyard.domain.errors import CallerMistake, Unavailable
from blastyard.domain.job import State
from blastyard.settings import Settings

if TYPE_CHECKING:
    from blastyard.admission.gate import Gate
    from blastyard.admission.ledger import Policy
    from blastyard.admission.port import DocumentStore
    from blastyard.bootstrap.operator import Operator
    from blastyard.bootstrap.yard import Yard
    from blastyard.service.gate_view import Where
    from blastyard.service.view import Shape

LATELY: Final = 50
"""Of so many ended searches the lifetimes are looked at."""
KEPT_SECONDS: Final = 60.0
"""For how long lifetimes are not asked for again."""

REBUILD: Final = (
    "`blastyard gate sweep --rebuild` begins a new one: the policy that the submitters remember, "
    "the holds that they and the markers claim, and the queue as they publish it again. Until all "
    "have done so nobody is admitted; what runs goes on"
)


class Scene(Protocol):
    """Both gates, with what is known besides their documents."""

    gate: Gate
    documents: DocumentStore
    seed: Policy
    where: Where | None
    """The namespace; ``None`` = this machine."""

    def shape(self, *, lately: bool = False) -> Shape:
        """How things stand; ``lately``: as the watch has it."""
        ...

    def sweep(self) -> list[str]:
        """Do the upkeep at once; in words, what needed it."""
        ...


class ClusterScene:
    """A shared namespace, without any store. Reads only, unless told otherwise."""

    def __init__(self, operator: Operator, settings: Settings) -> None:
        from blastyard.service.gate_view import Where  # noqa: PLC0415  (help needs none of it)

        self.gate = operator.gate
        self.documents = operator.documents
        self.seed = operator.seed
        is_named = bool(settings.kube_context)
        self.where: Where | None = Where(operator.namespace, operator.context, is_named)
        self._operator = operator
        self._lifetimes: tuple[timedelta, ...] = ()
        self._asked_at: float | None = None

    def shape(self, *, lately: bool = False) -> Shape:
        """See the port. Raises ``Unavailable`` and ``Misconfigured``."""
        from blastyard.service.gate_view import Outside, gate_shape  # noqa: PLC0415

        picture = self.gate.picture(lately=lately)
        view = picture.view(self.seed, self.gate.timings)
        if view.queue:
            self._learn()
        outside = Outside(self.where, lifetimes=self._lifetimes)
        return gate_shape(view, picture.lease, self.gate.timings, outside)

    def sweep(self) -> list[str]:
        """See the port."""
        self._operator.tend()
        return [_DONE[what] for what in self._operator.tend.done]

    def _learn(self) -> None:
        now = self._operator.clock.monotonic()
        if self._asked_at is None or now - self._asked_at >= KEPT_SECONDS:
            self._lifetimes = self._operator.lifetimes()
            self._asked_at = now


_DONE: Final = {
    "lease": "the submit lease of a holder that had fallen silent was taken over and let go",
    "failed": "slots of failed commands, of which nothing can arrive any more, were freed",
    "ended": "slots of searches that have ended were freed",
    "silent": "what silent submitters had left was cleared",
    "markers": "markers were put up, extended or removed",
}


class MachineScene:
    """This machine, with its store."""

    def __init__(self, yard: Yard) -> None:
        from blastyard.admission.ledger import Policy  # noqa: PLC0415

        self.gate = yard.gate
        self.documents = yard.documents
        self.seed = Policy(ceiling=yard.settings.max_run_concurrency)
        self.where: Where | None = None
        self._yard = yard

    def shape(self, *, lately: bool = False) -> Shape:  # noqa: ARG002  (a read is as cheap here)
        """See the port."""
        from blastyard.service.gate_view import Outside, gate_shape  # noqa: PLC0415

        view = self._yard.searches.queue()
        behind = self._yard.searches.behind(view)
        lifetimes = self._ended() if view.queue else ()
        outside = Outside(behind=behind, lifetimes=lifetimes)
        return gate_shape(view, self.gate.record.lease(), self.gate.timings, outside)

    def sweep(self) -> list[str]:
        """See the port."""
        self._yard.sweep(lambda _: False)
        return []

    def _ended(self) -> tuple[timedelta, ...]:
        completed = frozenset({State.COMPLETED})
        return tuple(
            search.finished_at - search.started_at
            for search in self._yard.searches.page(states=completed, limit=LATELY)
            if search.finished_at is not None and search.started_at is not None
        )


@contextmanager
def scene(settings: Settings, *, follows: bool = False) -> Iterator[Scene]:
    """Where the settings say that admission is decided; ``follows``: kept up to date by a watch.

    Raises what the block raises; a ledger that cannot be read is explained.
    """
    if settings.on_cluster:
        with on_cluster(settings, follows=follows) as found:
            yield found
        return
    with visited(settings) as yard, _explained(yard.documents):
        yield MachineScene(yard)


@contextmanager
def on_cluster(settings: Settings, *, follows: bool = False) -> Iterator[ClusterScene]:
    """The namespace that the settings mean. Makes no data directory."""
    from blastyard.bootstrap.operator import open_operator  # noqa: PLC0415  (brings HTTP)

    operator = open_operator(settings, follows=follows)
    with closing(operator), _explained(operator.documents):
        yield ClusterScene(operator, settings)


@contextmanager
def _explained(documents: DocumentStore) -> Iterator[None]:
    try:
        yield
    except Unavailable as error:
        if error.code != "ledger_unreadable":
            raise
        raise Unavailable(error.code, error.message, _step(error, documents)) from error


def _step(error: Unavailable, documents: DocumentStore) -> str:
    """What to do about a ledger that cannot be read, told apart from a newer one."""
    from blastyard.admission.port import LEDGER  # noqa: PLC0415
    from blastyard.service.operating import NEWER, is_newer  # noqa: PLC0415

    try:
        body = documents.read(LEDGER).body
    except Unavailable:  # it is being deleted, or cannot be read any more
        return error.next_step
    return NEWER if is_newer(body or b"") else REBUILD


def refuse_on_machine(settings: Settings, what: str) -> None:
    """Raise ``CallerMistake`` where admission is decided on this machine."""
    if not settings.on_cluster:
        raise CallerMistake(
            "request_invalid",
            f"{what} is for the cluster backend, and admission is decided on this machine here",
            "set BLAST_COORD_BACKEND=k8s to use a namespace of a Kubernetes cluster",
        )
