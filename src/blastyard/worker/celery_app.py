"""What the broker carries: that somebody should look after a search, and nothing else.

A message has the id of a search. Whoever receives it looks after the search if nobody alive does:
that is decided in the search's row, so a message may come twice, late or never. What comes never is
found by the reconciler, whose message any worker may receive, and by the workers' own sweeps.

No search waits in the broker. Whoever looks after it keeps it, and an event wakes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from celery import Celery
from kombu.exceptions import OperationalError

from blastyard.worker.coordination import VISIBILITY_SECONDS, TimeLimits

LOG = logging.getLogger(__name__)

LOOK_AFTER: Final = "blastyard.look_after"
RECONCILE: Final = "blastyard.reconcile"
QUEUE: Final = "blastyard"
RECONCILE_SECONDS: Final = 30.0
"""A search that nobody looks after is found within twice this time."""
ANNOUNCE_SECONDS: Final = 1.0
"""How long whoever submits waits for the broker; the search is stored by then."""


def make_app(broker: str, limits: TimeLimits) -> Celery:
    """The application, as worker, reconciler and whoever submits have it alike."""
    soft, hard = limits.task
    app = Celery("blastyard", broker=broker, set_as_current=False)
    app.conf.update(
        task_default_queue=QUEUE,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_ignore_result=True,
        task_soft_time_limit=soft,
        task_time_limit=hard,
        task_serializer="json",
        accept_content=["json"],
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_send_task_events=False,
        worker_enable_remote_control=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "visibility_timeout": VISIBILITY_SECONDS,
            "socket_connect_timeout": ANNOUNCE_SECONDS,
            "socket_keepalive": True,
        },
        beat_schedule={
            "reconcile": {
                "task": RECONCILE,
                "schedule": RECONCILE_SECONDS,
                "options": {"expires": RECONCILE_SECONDS},
            }
        },
        beat_scheduler="celery.beat:Scheduler",
        timezone="UTC",
    )
    return app


def register(app: Celery, look_after: Callable[[str], None], reconcile: Callable[[], None]) -> None:
    """Give the messages a meaning in this process. What fails is found by the reconciler."""

    def received(search_id: str) -> None:
        _logged(lambda: look_after(search_id), f"search {search_id} could not be taken on")

    def reconciled() -> None:
        _logged(reconcile, "the reconciliation failed")

    app.task(received, name=LOOK_AFTER)
    app.task(reconciled, name=RECONCILE)


def announce(app: Celery, search_id: str) -> None:
    """Tell the workers of a search. Never raises: the search is stored, and will be found."""
    try:
        app.send_task(LOOK_AFTER, (search_id,), retry=False)
    except (OperationalError, OSError) as error:
        LOG.warning("the broker could not be told of search %s: %s", search_id, error)


def work(app: Celery) -> None:
    """Receive messages in this thread until a signal. Tasks run in a few threads of it."""
    worker: Any = app.Worker(
        pool="threads", concurrency=2, loglevel="WARNING", without_gossip=True, without_mingle=True
    )
    worker.start()


def beat(app: Celery) -> None:
    """Send the reconciler's message every so often, in this thread, until a signal."""
    runner: Any = app.Beat(loglevel="WARNING", quiet=True)
    runner.run()


def _logged(call: Callable[[], None], failure: str) -> None:
    try:
        call()
    except Exception:
        LOG.exception("%s; the reconciler tries again", failure)
