"""Opening a table of an account: what is wrong is said, and no key or signature ever is."""

from __future__ import annotations

import logging
import os
import secrets
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Barrier
from urllib.parse import parse_qs

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    UpdateMode,
    generate_account_sas,
)
from azure_stage import SHORT, Stage, said

from blastyard.domain.errors import BlastyardError, Misconfigured, Unavailable
from blastyard.domain.search import Search
from blastyard.store.azure_tables import key, open_azure_tables
from blastyard.store.azure_tables.searches import AzureTablesSearchStore
from blastyard.store.port import Filter
from blastyard.testing import sample
from blastyard.testing.azurite import ACCOUNT, KEY, Azurite
from blastyard.testing.proxy_fault import Rule

PATH = "/data/nt"
NOWHERE = "http://127.0.0.1:9"
EXPIRED = datetime(2001, 1, 1, tzinfo=UTC)


def signature(expiry: datetime | None = None) -> str:
    """A shared access signature for all there is."""
    return generate_account_sas(
        AzureNamedKeyCredential(ACCOUNT, KEY),
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, update=True),
        expiry or datetime(2100, 1, 1, tzinfo=UTC),
    )


def test_an_address_with_a_signature_or_a_key_opens_the_table(azurite: Azurite) -> None:
    table = f"t{secrets.token_hex(8)}"
    store = open_azure_tables(f"{azurite.url}?{signature()}", table=table)
    added = store.add(sample.search(database=PATH), sample.QUEUED)
    store.close()

    for credential in (KEY, AzureNamedKeyCredential(ACCOUNT, KEY)):
        again = open_azure_tables(azurite.url, table=table, credential=credential)

        assert again.get(added.id) == added
        assert repr(again) == f"<AzureTablesSearchStore 127.0.0.1/{ACCOUNT}/{table}>"
        again.close()


@pytest.mark.parametrize(
    ("where", "table", "code"),
    [
        ("", "mine", "settings_invalid"),
        ("nonsense", "mine", "settings_invalid"),
        ("AccountName=a", "mine", "settings_invalid"),
        (f"AccountKey={KEY}", "mine", "settings_invalid"),
        (f"AccountName={ACCOUNT};AccountKey={KEY};Account", "mine", "settings_invalid"),
        ("http://", "mine", "settings_invalid"),
        ("https://[a.table.core.windows.net", "mine", "settings_invalid"),
        (f"AccountName={ACCOUNT};AccountKey={KEY}", "no-table", "settings_invalid"),
        (f"AccountName={ACCOUNT};AccountKey={KEY}", "1st", "settings_invalid"),
        ("https://a.table.core.windows.net", "mine", "dependency_missing"),
    ],
)
def test_what_leads_nowhere_is_described_and_not_repeated(
    where: str, table: str, code: str
) -> None:
    with pytest.raises(Misconfigured) as refused:
        open_azure_tables(where, table=table)

    assert refused.value.code == code
    assert refused.value.next_step
    assert KEY not in told(refused.value)


def told(error: BlastyardError) -> str:
    """All that anybody would print of an error."""
    return "".join([error.message, error.next_step, *traceback.format_exception(error)])


def test_a_wrong_key_is_refused_when_the_table_is_opened(azurite: Azurite) -> None:
    wrong = KEY.replace("Eby8", "AAAA")

    with pytest.raises(Misconfigured, match="refuses the credential") as refused:
        open_azure_tables(azurite.connection_string.replace(KEY, wrong))

    assert refused.value.code == "permission_denied"
    assert wrong not in told(refused.value)


def test_a_signature_that_has_expired_is_refused_when_the_table_is_opened(
    azurite: Azurite,
) -> None:
    token = signature(EXPIRED)

    with pytest.raises(Misconfigured, match="refuses the credential") as refused:
        open_azure_tables(f"{azurite.url}?{token}")

    assert parse_qs(token)["sig"][0] not in told(refused.value)


def test_a_credential_that_is_refused_later_decides_nothing(tables: Stage) -> None:
    store = tables.open()
    tables.proxy.plan.add(Rule(said(403, "AuthenticationFailed"), times=None))

    with pytest.raises(Unavailable, match="refuses the credential"):
        store.live()


def test_an_account_that_is_not_there_is_said_without_its_signature(
    caplog: pytest.LogCaptureFixture, azurite: Azurite
) -> None:
    token = signature()
    caplog.set_level(logging.DEBUG)

    with pytest.raises(Unavailable, match="did not answer") as refused:
        open_azure_tables(f"{NOWHERE}?{token}", patience=SHORT)
    store = open_azure_tables(f"{azurite.url}?{token}", table=f"t{secrets.token_hex(8)}")
    store.list(Filter())
    store.close()

    secret = parse_qs(token)["sig"][0]
    assert "urllib3" in {record.name.partition(".")[0] for record in caplog.records}
    for form in (secret, token, secret.replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")):
        assert form not in told(refused.value)
        assert form not in caplog.text
    assert KEY not in caplog.text


def test_a_table_of_a_newer_blastyard_is_left_alone(tables: Stage) -> None:
    tables.open()
    newer = {"PartitionKey": key.PARTITION, "RowKey": key.FORMAT, "Format": 99}
    tables.rows.update_entity(newer, mode=UpdateMode.MERGE)

    with pytest.raises(Misconfigured, match="newer") as refused:
        tables.open()

    assert refused.value.code == "store_newer"


def test_many_may_make_the_table_at_once(tables: Stage) -> None:
    barrier = Barrier(4)

    def begin(_: int) -> AzureTablesSearchStore:
        barrier.wait()
        return tables.open()

    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(begin, range(4)))

    added = stores[0].add(sample.search(database=PATH), sample.QUEUED)
    assert all(store.get(added.id) == added for store in stores)


def test_a_table_that_was_deleted_is_missed_and_not_taken_for_an_empty_one(tables: Stage) -> None:
    store = tables.open(patience=SHORT)
    added = store.add(sample.search(database=PATH), sample.QUEUED)
    tables.rows.delete_table()
    calls: list[Callable[[], object]] = [
        lambda: store.get(added.id),
        lambda: store.list(Filter()),
        lambda: store.add(added, sample.QUEUED),
        lambda: store.update(added),
        store.list_databases,
    ]

    for call in calls:
        with pytest.raises(Unavailable, match="the table is not there"):
            call()


def test_a_closed_store_says_so(tables: Stage) -> None:
    store = tables.open()
    store.close()

    with pytest.raises(Unavailable, match="was closed"):
        store.live()


def test_a_forked_child_goes_on_with_connections_of_its_own(tables: Stage) -> None:
    store = tables.open(direct=True)
    added = store.add(sample.search(database=PATH), sample.QUEUED)

    child = os.fork()
    if child == 0:  # it must not return into pytest
        os._exit(_parks(store, added))
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert store.get(added.id).phase == "parked"
    store.update(store.get(added.id))


def _parks(store: AzureTablesSearchStore, search: Search) -> int:
    try:
        store.update(replace(search, phase="parked"))
    except BaseException:
        return 1
    return 0


def test_the_clock_is_the_accounts(tables: Stage) -> None:
    store = tables.open()
    added = store.add(sample.search(database=PATH), sample.QUEUED)
    row = tables.rows.get_entity(key.PARTITION, key.by_id(added.id))

    written = row.metadata["timestamp"]

    assert written is not None
    emulated = timedelta(milliseconds=2)  # Azurite makes up what is less than a millisecond
    assert -emulated < written - added.created_at < timedelta(seconds=30)
