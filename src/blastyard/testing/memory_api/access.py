"""Who may do what: nothing is forbidden until a test forbids it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from blastyard.testing.memory_api.decoding import Undecodable, parsed
from blastyard.testing.memory_api.kind import Json, Place
from blastyard.testing.memory_api.refusal import Refusal, bad_request, forbidden, unauthorized

EVERY = "*"


@dataclass(slots=True)
class Access:
    """What the credential of all clients may not do, and whether it is one at all."""

    user: str = "system:serviceaccount:lab:blastyard"
    known: bool = True
    forbidden: set[tuple[str, str]] = field(default_factory=set)
    """Verbs and resources, as a Role names them: ``("update", "leases")``; ``*`` for any."""

    def check(self, verb: str, at: Place) -> None:
        """Raise ``Refusal`` (401, 403) unless it may."""
        if not self.known:
            raise unauthorized()
        if not self.allows(verb, at.resource):
            said = (
                f'User "{self.user}" cannot {verb} resource "{at.resource}" in API group '
                f'"{at.kind.group}" in the namespace "{at.namespace}"'
            )
            raise forbidden(at.kind, at.name, said)

    def allows(self, verb: str, resource: str) -> bool:
        """Whether it may."""
        return not self.forbidden & {
            (one, other) for one in (verb, EVERY) for other in (resource, EVERY)
        }

    def review(self, body: bytes | None) -> bytes:
        """Answer a SelfSubjectAccessReview. Raises ``Refusal``."""
        if not self.known:
            raise unauthorized()
        try:
            sent = parsed(body)
        except Undecodable as error:
            raise bad_request(str(error)) from None
        spec = sent.get("spec")
        asked = spec.get("resourceAttributes") if isinstance(spec, Mapping) else None
        if not isinstance(asked, Mapping):
            raise _nothing_asked()
        resource = str(asked.get("resource", ""))
        if asked.get("subresource"):
            resource += f"/{asked['subresource']}"
        document: Json = {
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": spec,
            "status": {"allowed": self.allows(str(asked.get("verb", "")), resource)},
        }
        return msgspec.json.encode(document)


def _nothing_asked() -> Refusal:
    said = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
    return Refusal(422, "Invalid", f'SelfSubjectAccessReview "" is invalid: spec: {said}')
