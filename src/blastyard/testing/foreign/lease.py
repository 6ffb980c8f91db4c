"""Gate A as a foreign program passes it: the submit Lease, judged by its own clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from blastyard.testing.foreign.api import Api, Document, Unanswered
from blastyard.testing.foreign.kind import Rules

RELEASE_TRIES: Final = 20
_WAIT_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Acquired:
    """It is inside. ``version`` is the resourceVersion of the Lease that says so."""

    version: str


@dataclass(frozen=True, slots=True)
class Busy:
    """Somebody else is inside, or has just gone in."""

    holder: str


def stamp(at: float) -> str:
    """UTC, ``Z``, exactly six fractional digits; ``at`` in seconds since 1970."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def is_free(spec: dict[str, Any], now: float, rules: Rules) -> bool:
    """Whether the Lease may be taken: nobody on it, never stamped, or expired by its own word.

    A ``renewTime`` that cannot be read is held for ever.
    """
    if not spec.get("holderIdentity"):
        return True
    renewed = spec.get("renewTime")
    if renewed is None:
        return True
    try:
        renewed_at = datetime.fromisoformat(str(renewed))
    except ValueError:
        return False
    if renewed_at.tzinfo is None:
        return False
    seconds = spec.get("leaseDurationSeconds") or rules.lease_seconds
    return now > renewed_at.timestamp() + float(seconds) + rules.skew_seconds


class GateA:
    """The Lease of one namespace. ``now`` is the program's own clock, right or wrong."""

    def __init__(self, api: Api, rules: Rules, now: Callable[[], float]) -> None:
        self._api = api
        self._rules = rules
        self._now = now
        self._name = f"elb-blast-submit-{api.namespace}"
        self._leases = "coordination.k8s.io/v1/leases"

    def acquire(self, holder: str) -> Acquired | Busy:
        """Take it, renew it, or see who has it. Raises as :meth:`Api.ask` does."""
        status, found = self._read()
        if status != 404:
            spec = found.get("spec") or {}
            ours = spec.get("holderIdentity") == holder
            leaving = "deletionTimestamp" in found["metadata"]
            if leaving or not (ours or is_free(spec, self._now(), self._rules)):
                return Busy(str(spec.get("holderIdentity")))
        version = None if status == 404 else found["metadata"]["resourceVersion"]
        try:
            status, written = self._write(version, holder)
        except Unanswered:
            return self._again(holder, lost=True)
        if status in (200, 201):
            return Acquired(written["metadata"]["resourceVersion"])
        return self._again(holder, lost=False)

    def _again(self, holder: str, *, lost: bool) -> Acquired | Busy:
        """After a conflict or no answer: it may have been our own write."""
        status, found = self._read()
        current = (found.get("spec") or {}).get("holderIdentity") if status == 200 else None
        if current == holder:
            return Acquired(found["metadata"]["resourceVersion"])
        if lost and not current:
            raise Unanswered("the Lease was not written")
        return Busy(str(current))

    def release(self, holder: str, wait: Callable[[float], None]) -> str | None:
        """Clear it if the holder is still ours; the version that was cleared, ``None`` if it
        was not ours or could not be cleared. Never raises what the server said."""
        for _ in range(RELEASE_TRIES):
            try:
                status, found = self._read()
                if status != 200 or (found.get("spec") or {}).get("holderIdentity") != holder:
                    return None
                version = found["metadata"]["resourceVersion"]
                status, written = self._write(version, "")
                if status == 200:
                    return str(written["metadata"]["resourceVersion"])
            except Unanswered as error:
                wait(error.retry_after or _WAIT_SECONDS)
        return None

    def _read(self) -> tuple[int, Document]:
        status, found = self._api.ask("GET", f"{self._leases}/{self._name}")
        if status not in (200, 404):
            raise Unanswered(f"the Lease: HTTP {status}")
        return status, found

    def _write(self, version: str | None, holder: str) -> tuple[int, Document]:
        """The whole body with nothing in its metadata but what names it."""
        metadata = {"name": self._name, "namespace": self._api.namespace}
        now = stamp(self._now())
        document: Document = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": self._rules.lease_seconds,
                "acquireTime": now,
                "renewTime": now,
            },
        }
        if version is None:
            return self._api.ask("POST", self._leases, document)
        metadata["resourceVersion"] = version
        return self._api.ask("PUT", f"{self._leases}/{self._name}", document)
