"""What the service, and the way to it, can answer instead of what was asked.

::

    Kind
    ├── ABSENT CHANGED EXISTS    the service decided: no such row, another ETag, the key is taken
    ├── REFUSED TOO_LARGE WRONG  the service decided: not with this credential, not like this
    ├── BUSY                     not done; asked again later it will be
    └── LOST                     nobody knows whether it was done

The only module that reads the vendor's exceptions. What they say is not repeated: their texts hold
addresses with signatures in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from http.client import HTTPException
from typing import Final

from azure.core.exceptions import (
    AzureError,
    DecodeError,
    HttpResponseError,
    ServiceRequestError,
    ServiceRequestTimeoutError,
    ServiceResponseTimeoutError,
)

from blastyard.domain.errors import Unavailable

ANY: Final = (AzureError, OSError, HTTPException, ValueError, AttributeError, LookupError)
"""All that a call of the library may raise. ``OSError`` (of the library below it) comes when the
connection breaks in the midst of a transaction's answer, what follows it when an answer is cut
short or is no table service's: the library takes it apart without looking.
"""


class Kind(Enum):
    """See the module."""

    ABSENT = auto()
    CHANGED = auto()
    EXISTS = auto()
    REFUSED = auto()
    TOO_LARGE = auto()
    WRONG = auto()
    BUSY = auto()
    LOST = auto()


_BY_STATUS: Final[dict[int, Kind]] = {
    HTTPStatus.UNAUTHORIZED: Kind.REFUSED,
    HTTPStatus.FORBIDDEN: Kind.REFUSED,
    HTTPStatus.NOT_FOUND: Kind.ABSENT,
    HTTPStatus.CONFLICT: Kind.EXISTS,
    HTTPStatus.PRECONDITION_FAILED: Kind.CHANGED,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: Kind.TOO_LARGE,
    HTTPStatus.TOO_MANY_REQUESTS: Kind.BUSY,
}
_BY_CODE: Final = {
    "EntityTooLarge": Kind.TOO_LARGE,
    "PropertyValueTooLarge": Kind.TOO_LARGE,
    "RequestBodyTooLarge": Kind.TOO_LARGE,
    "ServerBusy": Kind.BUSY,
    # an account or a table that is being made or removed
    "AccountBeingCreated": Kind.BUSY,
    "TableBeingDeleted": Kind.BUSY,
}
_TIMED_OUT: Final = 408
_NO_TABLE: Final = "TableNotFound"


class TableAbsent(Unavailable):
    """The account has no such table."""


class CredentialRefused(Unavailable):
    """The account does not let this credential do that."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One answer that is no success."""

    kind: Kind
    words: str
    """The service's own code, or what happened on the way."""
    retry_after: float | None = None
    """Seconds after which the service wants to be asked again."""

    @property
    def passes(self) -> bool:
        """Whether asking again is the remedy."""
        return self.kind in (Kind.BUSY, Kind.LOST)

    @property
    def is_about_the_table(self) -> bool:
        """Whether not the row but its whole table is absent."""
        return self.words == _NO_TABLE

    def unavailable(self, place: str) -> Unavailable:
        """The same for whoever asked the store. ``place`` names account and table."""
        make = Unavailable
        if self.kind is Kind.REFUSED:
            make = CredentialRefused
        elif self.is_about_the_table:
            make = TableAbsent
        error = make("store_unavailable", f"{place}: {self._sentence}", self._step)
        error.retry_after = self.retry_after
        return error

    @property
    def _sentence(self) -> str:
        match self.kind:
            case Kind.BUSY:
                return f"the storage account is throttling requests ({self.words})."
            case Kind.LOST:
                return f"the storage account did not answer ({self.words})."
            case Kind.REFUSED:
                return f"the storage account refuses the credential ({self.words})."
            case Kind.ABSENT if self.is_about_the_table:
                return "the table is not there (any more)."
            case _:
                return f"the storage account answered in a way that cannot be ({self.words})."

    @property
    def _step(self) -> str:
        match self.kind:
            case Kind.BUSY:
                return "Wait a moment; send fewer requests at once."
            case Kind.REFUSED:
                return (
                    "Renew the key or the shared access signature: it may have expired, or allow"
                    " less than to make tables, and to read, add, change and delete in them."
                )
            case Kind.ABSENT if self.is_about_the_table:
                return "Restore it, or start blastyard anew to begin with an empty one."
            case _:
                return "Try again; is the account's address right, and does the network lead there?"


def read(error: Exception) -> Trouble:
    """What one of :data:`ANY` says."""
    if not isinstance(error, HttpResponseError) or isinstance(error, DecodeError):
        return Trouble(Kind.LOST, _on_the_way(error))
    told = getattr(error, "error_code", None)
    code = str(getattr(told, "value", told) or "")
    status = error.status_code or 0
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status)
    if kind is None:
        kind = Kind.WRONG if 400 <= status < 500 and status != _TIMED_OUT else Kind.LOST
    return Trouble(kind, code or f"HTTP {status}", _retry_after(error))


def _on_the_way(error: Exception) -> str:
    if isinstance(error, ServiceRequestTimeoutError | ServiceResponseTimeoutError):
        return "no answer in time"
    if isinstance(error, ServiceRequestError):
        return "no connection"
    if isinstance(error, AzureError | OSError):
        return "the connection broke"
    return "no answer of a table service"


def _retry_after(error: HttpResponseError) -> float | None:
    headers = getattr(error.response, "headers", None) or {}
    try:
        seconds = float(headers.get("Retry-After", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
