"""The ledger: the one document that says what runs, what waits, and who set the ceiling.

This module has the document and its text form. What may be done to it stands beside it:
:mod:`~blastyard.admission.order` (who is next), :mod:`~blastyard.admission.ticket` (waiting) and
:mod:`~blastyard.admission.hold` (running). All of it is pure: a ledger and the store's ``now`` go
in, a new ledger comes out, and a store swaps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from blastyard.domain.errors import Unavailable

FORMAT: Final = 2
"""Written. Format 1, which had no cluster, is read as well."""


class Change(msgspec.Struct, frozen=True, array_like=True):
    """One change of the policy: when, by whom, and what, in words."""

    at: datetime
    by: str
    what: str


UNBOUNDED: Final = 1_000_000
"""A ceiling for where only submissions are kept apart, and nothing else."""


class Policy(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an operator decides. The environment only seeds the first one."""

    ceiling: int = 3
    user_cap: int | None = None
    """How many searches one user may have running; ``None`` = as many as the ceiling."""
    ageing_seconds: int = 3600
    """After each such span of waiting a search counts one priority higher."""
    version: int = 0
    changes: tuple[Change, ...] = ()
    """The latest changes, newest last."""


class Ticket(msgspec.Struct, frozen=True, omit_defaults=True):
    """A search's place in the queue. ``sequence`` is the order of the swaps that made them."""

    submitter: str
    user: str
    level: int
    sequence: int
    ticketed_at: datetime
    family: str | None = None
    """The search whose run slot this one shares; ``None`` = its own."""
    parked_by: str | None = None
    blocked: str | None = None
    """A phase the search waits in for a reason of its own, such as ``waiting_for_database``."""
    passed: int = 0
    """How often it was first, had a free slot, and did not claim it."""


class HoldState(StrEnum):
    """Whether the command of a hold has been seen to do its work."""

    RESERVED = "reserved"
    SUBMITTED = "submitted"


class Hold(msgspec.Struct, frozen=True, omit_defaults=True):
    """A search's claim on a run slot. Remembers its ticket, so that it can go back to it."""

    ticket: Ticket
    submitter: str
    attempt: int
    fence: int
    state: HoldState
    since: datetime
    cancelled: bool = False
    alias: str | None = None
    """The id it runs under in the cluster, when that is not the search's own."""
    watched: bool = False
    """It ends when the cluster shows it no more; otherwise by its submitter's word."""
    marked: bool = False
    """What makes peers count it was up once; when that vanishes, somebody has cancelled it."""
    marked_at: datetime | None = None
    """When that was last known to stand for its full time."""
    failed_at: datetime | None = None
    """Its command failed then. The slot is kept while a late write of it may still arrive."""


class Courtesy(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is owed to programs that poll, and would never find a free slot beside a queue."""

    owed_at: datetime | None = None
    """One of them was denied then; ``None`` = nothing is owed."""
    slot_at: datetime | None = None
    """Since when a slot that fell free is left to them."""
    paid: int = 0
    """The fence at the latest courtesy."""
    used_since: datetime | None = None
    """Since when Gate A has been in use without a pause."""
    used_at: datetime | None = None


class Ledger(msgspec.Struct, frozen=True, omit_defaults=True):
    """The document. A fence is the pair (``uid``, number), and is compared as such."""

    uid: str
    policy: Policy
    fence: int
    format: int = FORMAT
    sequence: int = 0
    holds: dict[str, Hold] = {}
    tickets: dict[str, Ticket] = {}
    served: dict[str, int] = {}
    """Per user the fence of the latest grant: who was served longest ago goes first."""
    turn_at: datetime | None = None
    """Since when the present head of the queue has had its turn."""
    last_ticketed_at: datetime | None = None
    courtesy: Courtesy = Courtesy()
    lone: dict[str, datetime] = {}
    """Foreign finalizers without companions, and since when; an operator or a deletion of their
    unfinished companions puts it long ago."""
    begun_at: datetime | None = None
    """When this ledger was begun in the place of a lost one."""
    restored: tuple[str, ...] | None = None
    """While claims are being collected after a loss: who has restored theirs. ``None`` = whole."""

    @property
    def is_whole(self) -> bool:
        """Whether anybody may be admitted on it."""
        return self.restored is None


class Fence(msgspec.Struct, frozen=True, array_like=True):
    """Names one grant for ever, also across a ledger that was lost and made again."""

    uid: str
    number: int

    @property
    def text(self) -> str:
        """One word, as it stands beside the ledger and on what was made by its right."""
        return f"{self.uid}/{self.number}"


class Submitter(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who submits: one process group on one store, and how to tell that it is gone.

    On one machine that is a process (pid, kernel start time and boot id name it for ever).
    """

    name: str
    kind: str
    """``serve``, ``search`` or ``command``."""
    account: int
    label: str = ""
    boot_id: str = ""
    pid: int = 0
    pid_started: int = 0
    pid_space: int = 0
    """The process namespace in which ``pid`` means something."""
    installation: str = ""
    """Processes of one installation share a store; empty where there is only one."""
    policy: Policy | None = None
    """The latest policy it saw."""
    address: str = ""
    """Where it answers, for a service."""


_LEDGER: Final = msgspec.json.Decoder(Ledger)
_ENCODER: Final = msgspec.json.Encoder()
_LISTS: Final = ("holds", "tickets")


def encode(document: msgspec.Struct) -> bytes:
    """The text form of any admission document: JSON, a ledger's with a line for each entry."""
    if not isinstance(document, Ledger):
        return _ENCODER.encode(document)
    head = _ENCODER.encode(msgspec.structs.replace(document, holds={}, tickets={}))[:-1]
    if document.format == FORMAT:  # a default, and yet what a reader asks for first
        head = b'{"format":%d,' % FORMAT + head[1:]
    parts = [head]
    for name in _LISTS:
        lines = [
            _ENCODER.encode(key) + b":" + _ENCODER.encode(entry)
            for key, entry in getattr(document, name).items()
        ]
        if lines:
            parts.append(b'"' + name.encode() + b'":{\n' + b",\n".join(lines) + b"\n}")
    return b",\n".join(parts) + b"}"


def fence_text(ledger: Ledger) -> str:
    """The latest fence as one word, for whoever compares it without reading the ledger."""
    return Fence(ledger.uid, ledger.fence).text


def decode_ledger(body: bytes) -> Ledger:
    """Read a ledger; raises ``Unavailable('ledger_unreadable')``, which admits nobody."""
    try:
        ledger = _LEDGER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unavailable(
            "ledger_unreadable",
            f"the ledger cannot be read ({error}), so nothing is admitted",
            "repair or remove it with `blastyard gate sweep --rebuild`",
        ) from error
    if ledger.format > FORMAT:
        raise Unavailable(
            "ledger_unreadable",
            f"the ledger has format {ledger.format}; this blastyard reads up to {FORMAT}",
            "update this blastyard to the version that the others run",
        )
    # written again, it has what older readers would drop without a word
    return msgspec.structs.replace(ledger, format=FORMAT)


def family(search: str, hold: Hold) -> str:
    """The run slot that a hold claims."""
    return hold.ticket.family or search


def families(holds: Mapping[str, Hold]) -> frozenset[str]:
    """The run slots that are claimed: one for each family."""
    return frozenset(family(search, hold) for search, hold in holds.items())
