"""What a Job's status may become: the rules of its ``status`` subresource.

They bind whoever writes the status of a Job, controllers included, and look only at what changes.
Source: the Job strategy of Kubernetes 1.34, where ``JobManagedBy`` is on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from blastyard.testing.memory_api.kind import Json
from blastyard.testing.memory_api.moment import read_whole
from blastyard.testing.memory_api.refusal import Fault

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
MET: Final = "SuccessCriteriaMet"
TARGET: Final = "FailureTarget"
SUSPENDED: Final = "Suspended"


def is_true(status: Json, kind: str) -> bool:
    """Whether a condition is true."""
    return any(
        one.get("type") == kind and one.get("status") == "True"
        for one in status.get("conditions", ())
    )


def is_finished(status: Json) -> bool:
    """Whether the Job has ended, one way or the other."""
    return is_true(status, COMPLETE) or is_true(status, FAILED)


def status_faults(spec: Json, before: Json, after: Json) -> list[Fault]:
    """What is wrong with a change of a Job's status."""
    return [
        *_counter_faults(before, after),
        *_condition_faults(before, after),
        *_permanence_faults(before, after),
        *_time_faults(spec, before, after),
        *_pod_faults(before, after),
    ]


def _counter_faults(before: Json, after: Json) -> Iterator[Fault]:
    for field in ("active", "succeeded", "failed", "ready", "terminating"):
        value = after.get(field, 0)
        if value < 0:
            rule = "must be greater than or equal to 0"
            yield Fault(f"status.{field}", f"Invalid value: {value}: {rule}")
        if field in ("succeeded", "failed") and value < before.get(field, 0):
            said = f"Invalid value: {value}: cannot decrease the {field} counter"
            yield Fault(f"status.{field}", said)


def _condition_faults(before: Json, after: Json) -> Iterator[Fault]:
    def changed(*kinds: str) -> bool:
        return any(is_true(before, kind) != is_true(after, kind) for kind in kinds)

    complete, failed = is_true(after, COMPLETE), is_true(after, FAILED)
    met, target = is_true(after, MET), is_true(after, TARGET)
    if changed(COMPLETE, FAILED) and complete and failed:
        yield _condition("cannot set Complete=True and Failed=true conditions")
    if changed(COMPLETE, TARGET) and complete and target:
        yield _condition("cannot set Complete=True and FailureTarget=true conditions")
    if changed(FAILED) and failed and not target:
        yield _condition(
            "cannot set Failed=True condition without the FailureTarget=true condition"
        )
    if changed(COMPLETE, MET) and complete and not met:
        said = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        yield _condition(said)
    if met and failed:
        yield _condition("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if met and target:
        yield _condition("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")


def _permanence_faults(before: Json, after: Json) -> Iterator[Fault]:
    for kind in (FAILED, COMPLETE, TARGET):
        if is_true(before, kind) and not is_true(after, kind):
            yield _condition(f"cannot disable the terminal {kind}=True condition")
    if is_true(before, MET) and not is_true(after, MET):
        yield _condition("cannot disable the SuccessCriteriaMet=True condition")


def _time_faults(spec: Json, before: Json, after: Json) -> Iterator[Fault]:
    started, ended = after.get("startTime", ""), after.get("completionTime", "")
    start_changed = started != before.get("startTime", "")
    end_changed = ended != before.get("completionTime", "")
    complete = is_true(after, COMPLETE)
    complete_changed = complete != is_true(before, COMPLETE)
    if (complete_changed or end_changed) and ended and not complete:
        said = "cannot set completionTime when there is no Complete=True condition"
        yield Fault("status.completionTime", f'Invalid value: "{ended}": {said}')
    if (complete_changed or end_changed) and complete and not ended:
        said = "Required value: completionTime is required for Complete jobs"
        yield Fault("status.completionTime", said, "FieldValueRequired")
    if end_changed and ended and before.get("completionTime"):
        yield Fault("status.completionTime", "Invalid value: field is immutable")
    compared = (start_changed or end_changed) and started and ended
    if compared and read_whole(ended) < read_whole(started):
        said = "must be equal to or after `startTime`"
        yield Fault("status.completionTime", f'Invalid value: "{ended}": {said}')
    finished_changed = is_finished(before) != is_finished(after)
    if (finished_changed or start_changed) and is_finished(after) and not started:
        said = "Required value: startTime is required for finished job"
        yield Fault("status.startTime", said, "FieldValueRequired")
    if start_changed and before.get("startTime") and not spec.get("suspend"):
        said = "Required value: startTime cannot be removed for unsuspended job"
        yield Fault("status.startTime", said, "FieldValueRequired")


def _pod_faults(before: Json, after: Json) -> Iterator[Fault]:
    finished_changed = is_finished(before) != is_finished(after)
    for field in ("active", "terminating"):
        value = after.get(field, 0)
        changed = finished_changed or value != before.get(field, 0)
        if changed and value > 0 and is_finished(after):
            said = f"Invalid value: {value}: {field}>0 is invalid for finished job"
            yield Fault(f"status.{field}", said)
    ready, active = after.get("ready", 0), after.get("active", 0)
    changed = (ready, active) != (before.get("ready", 0), before.get("active", 0))
    if changed and ready > active:
        yield Fault(
            "status.ready", f"Invalid value: {ready}: cannot set more ready pods than active"
        )
    uncounted = after.get("uncountedTerminatedPods", {})
    if finished_changed and is_finished(after) and any(uncounted.values()):
        yield Fault(
            "status.uncountedTerminatedPods", "Invalid value: must be empty for finished job"
        )


def _condition(said: str) -> Fault:
    return Fault("status.conditions", f"Invalid value: {said}")
