"""How the storage account is reached: a connection string, or its address and a credential.

Nothing of a key or a signature is ever in a message: what is malformed is described, not repeated.
Nor is it in a log: the vendor's own lines leave signatures out, and those of the library below it,
which show whole addresses to whoever asks for its debugging, are taken care of here.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.data.tables import TableClient

from blastyard.domain.errors import Misconfigured

_TABLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{2,62}")
_SIGNATURE: Final = re.compile(r"(\bsig=)[^&\s]+")
_IDENTITY: Final = "azure.identity"
_CONNECT_SECONDS: Final = 5.0
_READ_SECONDS: Final = 10.0
# what was not answered is asked again by Table, which must know that it is
_CLIENT: Final[dict[str, Any]] = {
    "retry_total": 0,
    "connection_timeout": _CONNECT_SECONDS,
    "read_timeout": _READ_SECONDS,
}
_EXAMPLES: Final = (
    "Give the account's connection string (AccountName=…;AccountKey=…;EndpointSuffix=…), or its"
    " address, such as https://ACCOUNT.table.core.windows.net, with a shared access signature"
    " (?sv=…&sig=…) behind it or a credential of its own."
)

Connect = Callable[[], TableClient]


@dataclass(frozen=True, slots=True)
class Account:
    """A table of an account. ``place`` names both in messages; ``connect`` makes a client."""

    place: str
    connect: Connect


def find(where: str, table: str, credential: object | None = None) -> Account:
    """The table of the account that ``where`` leads to.

    ``where`` is a connection string, or an address. ``credential`` belongs to an address: an
    account key, or what azure-core or azure-identity has for one; without any, and without a
    signature in the address, it is azure-identity's default one. Raises ``Misconfigured`` for what
    is malformed.
    """
    if not _TABLE.fullmatch(table):
        message = f"{table!r} cannot name an Azure table: that takes 3 to 63 letters and digits."
        raise Misconfigured("settings_invalid", message, "Choose a name such as blastyard.")
    logging.getLogger("urllib3.connectionpool").addFilter(_without_signature)
    found: Account | None = None
    try:
        connect = _way(where, table, credential)
        with connect() as client:
            address = urlsplit(client.url)
        found = Account(f"{address.hostname}{address.path.rstrip('/')}/{table}", connect)
    except (ValueError, TypeError, AttributeError):
        pass  # and what these say is not to be seen
    if found is None:
        message = "What is to lead to the Azure storage account is malformed or incomplete."
        raise Misconfigured("settings_invalid", message, _EXAMPLES)
    return found


def _way(where: str, table: str, credential: object | None) -> Connect:
    if not where.lower().startswith(("http://", "https://")):
        return lambda: TableClient.from_connection_string(where, table, **_CLIENT)
    address = urlsplit(where)
    if not address.hostname:
        raise ValueError("an address of nobody")
    if "sig" in parse_qs(address.query):
        if credential is not None:
            raise ValueError("two credentials")
        # left in the address, it would be missing from the client's transactions
        credential = AzureSasCredential(address.query)
    elif isinstance(credential, str):
        account = address.path.strip("/") or address.hostname.partition(".")[0]
        credential = AzureNamedKeyCredential(account, credential)
    elif credential is None:
        credential = _default_credential()
    endpoint = address._replace(query="", fragment="").geturl()
    given: Any = credential
    return lambda: TableClient(endpoint, table, credential=given, **_CLIENT)


def _default_credential() -> object:
    """What azure-identity finds on this machine: a managed identity, an account that signed in."""
    try:
        identity = import_module(_IDENTITY)
    except ImportError:
        raise Misconfigured(
            "dependency_missing",
            "The address of the Azure storage account has no shared access signature, and the"
            " Python package azure-identity, which finds other credentials, is not installed.",
            f"pip install azure-identity. Or: {_EXAMPLES}",
        ) from None
    made: object = identity.DefaultAzureCredential()
    return made


def _without_signature(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(
            _SIGNATURE.sub(r"\1REDACTED", each) if isinstance(each, str) else each
            for each in record.args
        )
    return True
