"""The verbs of a Kubernetes API, one request each, with what went wrong told apart.

What is expected to happen among several writers is a value (:class:`Conflict`, :class:`Absent`,
:class:`AlreadyExists`, :class:`Denied`); what cannot be told, and what the credential may not, is
raised (:mod:`blastyard.kube.error`). Nothing is sent a second time: after ``cluster_unavailable``
a write may have been applied, and whoever asked reads again.

Every answer's ``Date`` goes to the :class:`~blastyard.kube.clock.ServerClock`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Generic, TypeVar

import msgspec

from blastyard.kube.clock import ServerClock
from blastyard.kube.error import ServerTrouble, refusal, status_of
from blastyard.kube.outcome import (
    Absent,
    AlreadyExists,
    Conflict,
    Deleted,
    Denied,
    Found,
    Object,
    settled,
    unreadable,
)
from blastyard.kube.rbac import check_namespace
from blastyard.kube.resource import Resource
from blastyard.kube.review import Access
from blastyard.kube.watching import Watching
from blastyard.kube.wire import Answer, Call, Wire

T = TypeVar("T")

Observer = Callable[[str, str, int, float], None]
"""Is told of each request: verb, resource, HTTP status (0 = no answer), seconds."""

PAGE: Final = 500
"""Objects on one page of a list."""

FIELD_MANAGER: Final = "blastyard"

_RESTARTS: Final = 3
_MERGE: Final = "application/merge-patch+json"
_ENCODER: Final = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """Everything selected, at one version. Moments are monotonic seconds."""

    items: list[T]
    version: str
    sent_at: float
    received_at: float


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind: a label selector and a field selector, in Kubernetes' own syntax."""

    labels: str = ""
    fields: str = ""

    def query(self) -> dict[str, str]:
        """As parameters of a request."""
        said = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: text for name, text in said.items() if text}


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, Generic[T], frozen=True):
    metadata: _ListMeta
    items: list[T] | None


class _Expired(Exception):
    """The list that is being read page by page is too old to go on with."""


class Client:
    """One namespace of one cluster. Thread-safe.

    ``monotonic`` is the wire's clock. Raises ``CallerMistake`` for what cannot be a namespace.
    """

    def __init__(
        self,
        wire: Wire,
        namespace: str,
        monotonic: Callable[[], float],
        observer: Observer | None = None,
    ) -> None:
        check_namespace(namespace)
        self.namespace = namespace
        self.clock = ServerClock()
        self._wire = wire
        self._monotonic = monotonic
        self._observer = observer or (lambda *_: None)
        self._pages: dict[type, msgspec.json.Decoder[Any]] = {}

    def get(self, resource: Resource, name: str) -> Found | None:
        """The object as it is now, never from a cache; ``None`` when there is none."""
        access = self._access("get", resource, name)
        answer = self._send(access, Call("GET", self._path(resource, name)))
        found = settled(access, answer, Found, Absent)
        return found if isinstance(found, Found) else None

    def create(self, resource: Resource, new: Object) -> Found | AlreadyExists | Denied:
        """Make an object. Raises ``Misconfigured`` when there is no such namespace."""
        access = self._access("create", resource, new["metadata"]["name"])
        answer = self._send(access, self._writing("POST", resource, new))
        return settled(access, answer, Found, AlreadyExists, Denied)

    def replace(self, resource: Resource, new: Object) -> Found | Conflict | Denied:
        """Write an object whose metadata names the uid and resourceVersion it replaces.

        Both, because an old version alone would make anew what was deleted meanwhile.
        """
        metadata = new["metadata"]
        if not metadata.get("uid") or not metadata.get("resourceVersion"):
            raise ValueError("an object is replaced by its uid and resourceVersion")
        access = self._access("update", resource, metadata["name"])
        answer = self._send(access, self._writing("PUT", resource, new, metadata["name"]))
        outcome = settled(access, answer, Found, Conflict, Denied, Absent)
        return Conflict() if isinstance(outcome, Absent) else outcome

    def patch(
        self, resource: Resource, name: str, change: Object, subresource: str = ""
    ) -> Found | Absent | Conflict | Denied:
        """Merge ``change`` into the object (RFC 7396), or into its subresource.

        A conflict is answered only when ``change`` names a resourceVersion.
        """
        access = self._access("patch", resource, name, subresource)
        call = Call(
            "PATCH",
            self._path(resource, name, subresource),
            {"fieldManager": FIELD_MANAGER},
            _ENCODER.encode(change),
            _MERGE,
        )
        answer = self._send(access, call)
        return settled(access, answer, Found, Absent, Conflict, Denied)

    def delete(
        self, resource: Resource, name: str, uid: str, version: str = ""
    ) -> Deleted | Absent | Conflict | Denied:
        """Delete the object of that uid, at that version if one is named; what it owns follows."""
        preconditions = {"uid": uid} | ({"resourceVersion": version} if version else {})
        options = {"preconditions": preconditions, "propagationPolicy": "Background"}
        access = self._access("delete", resource, name)
        path = self._path(resource, name)
        answer = self._send(access, Call("DELETE", path, body=_ENCODER.encode(options)))
        return settled(access, answer, Deleted, Absent, Conflict, Denied)

    def delete_collection(self, resource: Resource, selection: Selection) -> Deleted | Denied:
        """Delete everything selected; refuses to do so to all objects of a kind."""
        if not selection.query():
            raise ValueError("a collection is deleted by a selector")
        access = self._access("deletecollection", resource)
        body = _ENCODER.encode({"propagationPolicy": "Background"})
        call = Call("DELETE", self._path(resource), selection.query(), body)
        answer = self._send(access, call)
        return settled(access, answer, Deleted, Denied)

    def listing(
        self,
        resource: Resource,
        item: type[T],
        selection: Selection = Selection(),
    ) -> Listing[T]:
        """Everything selected, all pages of it, never from a cache.

        Each object is decoded as ``item``: a dictionary, or a struct of what is needed. When the
        server has forgotten the version that the pages are of, it starts over, a few times.
        """
        access = self._access("list", resource)
        for _ in range(_RESTARTS):
            try:
                return self._list(access, self._path(resource), item, selection.query())
            except _Expired:
                continue
        raise ServerTrouble(
            f"asked to {access}, the API server forgot {_RESTARTS} times what it was listing",
            "try again",
            HTTPStatus.GONE,
        )

    def watch(
        self,
        resource: Resource,
        item: type[T],
        version: str,
        selection: Selection = Selection(),
        seconds: int = 300,
    ) -> Watching[T]:
        """Follow what happens to everything selected after ``version``, for so long.

        Bookmarks are asked for. To be closed by whoever asked.
        """
        access = self._access("watch", resource)
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
            **selection.query(),
        }
        began = self._monotonic()
        status = 0
        try:
            stream = self._wire.stream(Call("GET", self._path(resource), query))
            status = stream.status
        finally:
            self._observer(access.verb, access.resource, status, self._monotonic() - began)
        if status not in (HTTPStatus.OK, HTTPStatus.GONE):
            body, retry_after = stream.body, stream.retry_after
            stream.close()
            raise refusal(access, status, body, retry_after)
        return Watching(stream, item, access)

    def _list(
        self, access: Access, path: str, item: type[T], query: Mapping[str, str]
    ) -> Listing[T]:
        items: list[T] = []
        first: Answer | None = None
        version = continued = ""
        while True:
            paging = {"limit": str(PAGE)} | ({"continue": continued} if continued else {})
            answer = self._send(access, Call("GET", path, {**query, **paging}))
            first = first or answer
            page = self._page(access, answer, item)
            items += page.items or ()
            version = version or page.metadata.resource_version
            continued = page.metadata.continue_
            if not continued:
                return Listing(items, version, first.sent_at, answer.received_at)

    def _page(self, access: Access, answer: Answer, item: type[T]) -> _Page[T]:
        if answer.status == HTTPStatus.GONE and status_of(answer.body):
            raise _Expired
        if answer.status != HTTPStatus.OK:
            raise refusal(access, answer.status, answer.body, answer.retry_after)
        if item not in self._pages:
            self._pages[item] = msgspec.json.Decoder(_Page[item])  # type: ignore[valid-type]
        try:
            page: _Page[T] = self._pages[item].decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise unreadable(access, answer.status, str(error)) from error
        return page

    def _send(self, access: Access, call: Call) -> Answer:
        began = self._monotonic()
        status = 0
        try:
            answer = self._wire.send(call)
            status = answer.status
        finally:
            self._observer(access.verb, access.resource, status, self._monotonic() - began)
        self.clock.observe(answer)
        return answer

    def _writing(self, method: str, resource: Resource, new: Object, name: str = "") -> Call:
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **new}
        path = self._path(resource, name)
        return Call(method, path, {"fieldManager": FIELD_MANAGER}, _ENCODER.encode(body))

    def _path(self, resource: Resource, name: str = "", subresource: str = "") -> str:
        return resource.path(self.namespace, name, subresource)

    def _access(
        self, verb: str, resource: Resource, name: str = "", subresource: str = ""
    ) -> Access:
        plural = f"{resource.plural}/{subresource}" if subresource else resource.plural
        namespace = self.namespace if resource.namespaced else ""
        return Access(verb, resource.group, plural, namespace, name)
