"""Until when a credential is good, as far as it says so itself."""

from __future__ import annotations

import base64
import binascii
import ssl
from datetime import UTC, datetime
from typing import Final

import msgspec

_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_FORMATS: Final = {_UTC_TIME: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}


class _Claims(msgspec.Struct, frozen=True):
    exp: float | None = None


def certificate_expires_at(pem: str) -> datetime | None:
    """``notAfter`` of the first certificate (RFC 5280, section 4.1); ``None`` if unreadable."""
    begin, end = pem.find(_BEGIN), pem.find(_END)
    if begin < 0 or end < begin:
        return None
    try:
        der = ssl.PEM_cert_to_DER_cert(pem[begin : end + len(_END)])
        to_be_signed = _elements(_elements(der)[0][1])[0][1]
        fields = [each for each in _elements(to_be_signed) if each[0] != _VERSION]
        # serial number, signature, issuer, validity
        kind, not_after = _elements(fields[3][1])[1]
        return datetime.strptime(not_after.decode(), _FORMATS[kind]).replace(tzinfo=UTC)
    except (ValueError, IndexError, KeyError):
        return None


def token_expires_at(token: str) -> datetime | None:
    """``exp`` of a token that is a JWT (RFC 7519); ``None`` for one that is none or does not say.

    Nothing is verified.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        claims = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=_Claims)
        return None if claims.exp is None else datetime.fromtimestamp(claims.exp, UTC)
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError, OverflowError, ValueError):
        return None


def _elements(der: bytes) -> list[tuple[int, bytes]]:
    """Tag and content of each element (X.690, section 8.1). Raises ``IndexError`` when cut."""
    found = []
    at = 0
    while at < len(der):
        tag, length = der[at], der[at + 1]
        at += 2
        if length & 0x80:
            size = length & 0x7F
            length = int.from_bytes(der[at : at + size], "big")
            at += size
        if at + length > len(der):
            raise IndexError("an element is longer than what it is in")
        found.append((tag, der[at : at + length]))
        at += length
    return found
