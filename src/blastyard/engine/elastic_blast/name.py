"""Under which id a search goes in the cluster. Pure.

An id is the value of a label and part of object names, of which ElasticBLAST uses only the last
eight characters; a key is lower-cased on the way. So an id has lower-case letters, digits and ``-``
only, and its last eight characters are a hash of everything that tells it from others: forty bits,
so that among a thousand ids of one namespace two are alike once in two million namespaces.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

TAIL: Final = 8
"""Characters of an id that stand in the names of its objects."""
LONGEST: Final = 61
"""Characters of an id: a label has 63, and a marker's label two more than the id it stands for."""

_HEAD: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_HEAD_LENGTH: Final = LONGEST - TAIL - 1
_ID: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class ClusterName:
    """An id, and what it was made from."""

    id: str
    search: str
    key: str

    @property
    def tail(self) -> str:
        """What object names are made of."""
        return self.id[-TAIL:]


def cluster_name(search: str, key: str = "") -> ClusterName:
    """The name of a search, or of one attempt or child of it that ``key`` tells from the others.

    Always the same for the same arguments, whatever their length, letters and alphabet. An id of
    ours (a UUID) stands in the name as it is, so that ``kubectl`` shows whose object it is.
    """
    digest = sha256(f"{len(search)}:{search}{key}".encode("utf-8", "surrogatepass"))
    tail = base64.b32encode(digest.digest()[: TAIL * 5 // 8]).decode().lower()
    readable = len(search) <= _HEAD_LENGTH and _HEAD.fullmatch(search)
    head = (
        search
        if readable
        else f"x{sha256(search.encode('utf-8', 'surrogatepass')).hexdigest()[:20]}"
    )
    return ClusterName(f"{head}-{tail}", search, key)


def is_cluster_id(text: str) -> bool:
    """Whether this can be the id of a search in a cluster, whoever made it."""
    return _ID.fullmatch(text) is not None


def require_cluster_id(text: str) -> str:
    """The id. Raises ``ValueError``: what is no id would select other objects, or all."""
    if not is_cluster_id(text):
        raise ValueError(f"{text!r} cannot be the id of a search in a cluster")
    return text
