"""Which ids were seen before, for millions of them in bounded memory."""

from __future__ import annotations

from array import array
from typing import Final

_START: Final = 1 << 12
_LIMIT: Final = 1 << 22


class IdTable:
    """A set of 8-byte hashes with open addressing: 8 to 16 bytes an id, at most 32 MB.

    After about 2.9 million ids it takes no more and :attr:`full` is true. Two different ids of
    one hash would pass for the same; among a million that happens once in 10**7 runs.
    """

    def __init__(self) -> None:
        self._slots = array("q", bytes(8 * _START))
        self._mask = _START - 1
        self._used = 0
        self.full = False

    def add(self, name: bytes) -> bool:
        """Remember ``name``; true when it was there already."""
        value = hash(name) or 1
        slots, mask = self._slots, self._mask
        slot = value & mask
        while there := slots[slot]:
            if there == value:
                return True
            slot = (slot + 1) & mask
        if not self.full:
            slots[slot] = value
            self._used += 1
            if self._used * 10 > (mask + 1) * 7:
                self._grow()
        return False

    def _grow(self) -> None:
        size = (self._mask + 1) * 2
        if size > _LIMIT:
            self.full = True
            return
        old, mask = self._slots, size - 1
        slots = array("q", bytes(8 * size))
        for value in old:
            if value:
                slot = value & mask
                while slots[slot]:
                    slot = (slot + 1) & mask
                slots[slot] = value
        self._slots, self._mask = slots, mask
