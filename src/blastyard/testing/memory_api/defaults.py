"""What the API server fills in when an object is created."""

from __future__ import annotations

from typing import Any, Final

from blastyard.testing.memory_api.kind import JOB, Json, Kind

_UID_LABELS: Final = ("batch.kubernetes.io/controller-uid", "controller-uid")
_NAME_LABELS: Final = ("batch.kubernetes.io/job-name", "job-name")
_CONTAINER: Final = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}
_POD: Final = {
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}


def complete(kind: Kind, document: Json) -> None:
    """Fill in what is not there; it counts as written by the client."""
    if kind is not JOB:
        return
    document["status"] = {}
    document["metadata"]["generation"] = 1
    spec = document["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6 if "backoffLimitPerIndex" not in spec else 2**31 - 1)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault(
        "podReplacementPolicy",
        "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed",
    )
    template = spec.setdefault("template", {})
    _complete_pod(template.setdefault("spec", {}))


def prepare(kind: Kind, document: Json) -> None:
    """Fill in what follows from the name and the uid; it counts as nobody's."""
    if kind is not JOB:
        return
    if not document["spec"]["manualSelector"]:
        _choose_pods(document["spec"], document["metadata"])
    inherit_labels(document)


def inherit_labels(job: Json) -> None:
    """A Job without any labels has those of its pods."""
    labels = job["spec"]["template"].get("metadata", {}).get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


def _complete_pod(pod: dict[str, Any]) -> None:
    for key, value in _POD.items():
        pod.setdefault(key, value)
    for container in (*pod.get("containers", ()), *pod.get("initContainers", ())):
        for key, value in _CONTAINER.items():
            container.setdefault(key, value)


def _choose_pods(spec: Json, metadata: Json) -> None:
    own = dict.fromkeys(_UID_LABELS, metadata["uid"]) | dict.fromkeys(
        _NAME_LABELS, metadata["name"]
    )
    template = spec["template"].setdefault("metadata", {})
    template["labels"] = {**own, **template.get("labels", {})}
    matched = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    matched.setdefault(_UID_LABELS[0], metadata["uid"])
