"""Lists, whole or page by page, all of one moment."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from blastyard.testing.memory_api import refusal
from blastyard.testing.memory_api.kind import Json, Place
from blastyard.testing.memory_api.selector import Selector, parse
from blastyard.testing.memory_api.storage import Record, Storage

_TOKEN_VERSION: Final = "meta.k8s.io/v1"
_ANY_MOMENT: Final = -1
"""What a token says that goes on with whatever is there by then."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a list goes on: at what moment, after which name."""

    revision: int
    after: str

    def token(self) -> str:
        """What a client is given for it."""
        start = f"/{self.after}\0"
        text = msgspec.json.encode({"v": _TOKEN_VERSION, "rv": self.revision, "start": start})
        return base64.urlsafe_b64encode(text).rstrip(b"=").decode()

    @classmethod
    def of(cls, token: str) -> Cursor:
        """What a client gives back. Raises ``Refusal`` (400)."""
        try:
            text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
            found: Any = msgspec.json.decode(text)
            return cls(int(found["rv"]), str(found["start"]).strip("/\0"))
        except (ValueError, KeyError, TypeError) as error:
            said = f"invalid continue token: continue key is not valid: {error}"
            raise refusal.bad_request(said) from None


def listed(storage: Storage, at: Place, query: Mapping[str, str], most: int | None) -> bytes:
    """The body of a list's answer. ``most`` objects are in a page, if a limit is asked for.

    Raises ``Refusal``.
    """
    selector = parse(at.kind, query)
    revision, records, after = _moment(storage, at, query)
    limit = _limit(query)
    if query.get("resourceVersion") == "0":
        limit = 0  # it comes from the watch cache, which knows no pages
    elif limit and most is not None:
        limit = min(limit, most)
    found = [one for one in _following(records, after) if selector.holds(one.document)]
    page = found[:limit] if limit else found
    metadata: Json = {"resourceVersion": str(revision)}
    if len(page) < len(found):
        if (at.kind, at.namespace, revision) not in storage.snapshots:
            storage.keep(at.kind, at.namespace)
        metadata["continue"] = Cursor(revision, _name(page[-1])).token()
        if not selector:
            metadata["remainingItemCount"] = len(found) - len(page)
    return _body(at, metadata, page)


def selected(storage: Storage, at: Place, selector: Selector) -> list[Record]:
    """The objects of now that are selected, by name."""
    found = storage.of(at.kind, at.namespace)
    return [found[name] for name in sorted(found) if selector.holds(found[name].document)]


def body_of(at: Place, revision: int, records: Sequence[Record]) -> bytes:
    """A list of these objects."""
    return _body(at, {"resourceVersion": str(revision)}, records)


def _moment(
    storage: Storage, at: Place, query: Mapping[str, str]
) -> tuple[int, Sequence[Record], str]:
    if query.get("resourceVersionMatch", "NotOlderThan") != "NotOlderThan":
        raise NotImplementedError("lists of an exact past version are not done here")
    token, version = query.get("continue", ""), query.get("resourceVersion", "")
    if not token:
        asked = int(version or 0)
        if asked > storage.revision:
            raise refusal.from_the_future(asked, storage.revision)
        return storage.revision, _now(storage, at), ""
    if version not in ("", "0"):
        said = "specifying resource version is not allowed when using continue"
        raise refusal.bad_request(said)
    cursor = Cursor.of(token)
    if cursor.revision == _ANY_MOMENT:
        return storage.revision, _now(storage, at), cursor.after
    kept = storage.snapshots.get((at.kind, at.namespace, cursor.revision))
    if kept is None:
        expired = refusal.expired(refusal.TOO_OLD_PAGE)
        anew = Cursor(_ANY_MOMENT, cursor.after).token()
        expired.document["metadata"] = {"continue": anew}
        raise expired
    return cursor.revision, kept, cursor.after


def _now(storage: Storage, at: Place) -> list[Record]:
    found = storage.of(at.kind, at.namespace)
    return [found[name] for name in sorted(found)]


def _following(records: Sequence[Record], after: str) -> Iterator[Record]:
    return (one for one in records if not after or _name(one) > after)


def _limit(query: Mapping[str, str]) -> int:
    text = query.get("limit", "") or "0"
    try:
        return max(0, int(text))
    except ValueError:
        raise refusal.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _name(record: Record) -> str:
    name: str = record.document["metadata"]["name"]
    return name


def _body(at: Place, metadata: Json, records: Sequence[Record]) -> bytes:
    head = {"kind": f"{at.kind.name}List", "apiVersion": at.kind.version, "metadata": metadata}
    items = b",".join(one.list_item for one in records)
    return msgspec.json.encode(head)[:-1] + b',"items":[' + items + b"]}"
