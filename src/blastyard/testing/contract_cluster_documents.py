"""What a ``DocumentStore`` in a Kubernetes namespace must do: the contract, with its documents."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from blastyard.admission.lease import SubmitLease
from blastyard.admission.ledger import encode
from blastyard.admission.port import LEASE, LEDGER, Version
from blastyard.testing.contract_documents import SOON, DocumentStoreContract, OpenStore


class KubernetesDocumentStoreContract(DocumentStoreContract):
    """Subclass it as the other; only the known documents can be kept, in the form they have."""

    DOCUMENT = LEDGER
    NAMES = (LEDGER, "submitter/a", "submitter/b")
    SCANNED = ("submitter/b", "submitter/a_%", "submitter/ü\U0001f9ec", LEDGER, LEASE)
    BODIES = (b"", b'{"a": 1,\n"b": "\'"}\n', "ü\U0001f9ec".encode() * 100_000)
    COARSE = timedelta(seconds=1.1)

    def body(self, raw: bytes) -> bytes:
        return encode(SubmitLease(f"holder-{raw.hex()}"))

    def unused(self, versions: Collection[Version]) -> Version:
        known = [version for version in versions if isinstance(version, str)]
        if not known:
            return "00000000-0000-4000-8000-000000000000/1"
        uid, _, number = max(known, key=lambda version: int(version.partition("/")[2])).partition(
            "/"
        )
        return f"{uid}/{int(number) + 1_000_000}"

    def test_a_notice_wakes_every_watch(self, open_store: OpenStore) -> None:
        """Of this process: nothing in a cluster can be knocked on without being written."""
        store = open_store()
        watches = [store.watch(), store.watch()]

        store.notify()

        assert all([watch.wait(SOON) for watch in watches])  # noqa: C419  (all of them wait)
