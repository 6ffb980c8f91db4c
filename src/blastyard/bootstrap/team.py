"""Several processes over shared stores: web replicas, workers, and the reconciler's clock."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from blastyard.domain.errors import Misconfigured
from blastyard.settings import Settings
from blastyard.worker.coordination import TimeLimits, violations

if TYPE_CHECKING:
    from celery import Celery

    from blastyard.bootstrap.yard import Yard
    from blastyard.worker.inprocess import Worker

LOG = logging.getLogger(__name__)


def time_limits(settings: Settings) -> TimeLimits:
    """What the settings say."""
    return TimeLimits(
        settings.submit_exec_timeout_seconds,
        settings.submit_lease_ttl_seconds,
        settings.task_soft_time_limit,
        settings.task_time_limit,
    )


def assert_coordination_invariants(settings: Settings) -> None:
    """Refuse, or warn of, time limits that would let two submissions overlap.

    Raises ``Misconfigured`` with every violation where the gate is a cluster's; otherwise they are
    logged.
    """
    found = violations(time_limits(settings))
    if not found:
        return
    if settings.on_cluster:
        raise Misconfigured(
            "settings_invalid",
            "; ".join(found),
            "correct these variables; docs/settings.md says what each means",
        )
    for sentence in found:
        LOG.warning("%s", sentence)


def broker(settings: Settings) -> Celery:
    """The broker's application, not connected. Raises ``Misconfigured`` when there is none."""
    if not settings.redis_url:
        raise Misconfigured(
            "settings_invalid",
            "BLASTYARD_REDIS_URL is not set, and the workers are told of searches through Redis",
            "set it, for example BLASTYARD_REDIS_URL=redis://127.0.0.1:6379/0",
        )
    assert_coordination_invariants(settings)
    try:
        from blastyard.worker.celery_app import make_app  # noqa: PLC0415  (only a team has it)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("celery", "kombu", "redis"):
            raise
        raise Misconfigured(
            "dependency_missing",
            f"the Python package {error.name}, which a team installation takes, is not installed",
            "pip install 'blastyard[team]'",
        ) from None
    return make_app(settings.redis_url, time_limits(settings))


def serve_messages(app: Celery, yard: Yard, worker: Worker) -> None:
    """Receive the broker's messages in this thread, for a worker that runs in another."""
    from blastyard.worker.celery_app import register, work  # noqa: PLC0415

    def look_after(search_id: str) -> None:
        if yard.sweep.adopt(search_id):
            worker.take([search_id])

    def reconcile() -> None:
        worker.take(yard.sweep(lambda _search: True).adopted)

    register(app, look_after, reconcile)
    work(app)
