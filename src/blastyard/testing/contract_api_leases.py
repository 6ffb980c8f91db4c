"""What an API server does with Leases only."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from blastyard.testing.contract_api import ApiContract, ApiUnderTest, Caller, lease

HELD: Final[Mapping[str, object]] = {"holderIdentity": "one", "leaseDurationSeconds": 900}


class LeaseContract(ApiContract):
    """What is true of Leases only."""

    @pytest.fixture
    def leases(self, api: ApiUnderTest) -> Caller:
        """Leases."""
        return Caller(api, "leases")

    def test_a_put_that_names_no_version_is_refused(self, leases: Caller) -> None:
        leases.post(lease("a", HELD))

        assert leases.put("a", lease("a", {"holderIdentity": "two"})).outcome == (422, "Invalid")

    def test_a_put_makes_the_lease_that_is_not_there_whatever_version_it_names(
        self, leases: Caller
    ) -> None:
        old = leases.post(lease("a", HELD))
        leases.delete("a")

        assert leases.put("a", lease("a", HELD, resourceVersion=old.version)).status == 201
        assert leases.put("b", lease("b", HELD)).status == 201
        assert leases.get("a").uid != old.uid

    def test_a_put_that_names_a_uid_makes_nothing(self, leases: Caller) -> None:
        old = leases.post(lease("a", HELD))
        leases.delete("a")

        said = leases.put("a", lease("a", HELD, resourceVersion=old.version, uid=old.uid))

        assert said.outcome == (409, "Conflict")
        assert leases.get("a").status == 404

    def test_of_two_who_read_one_version_the_first_wins(self, leases: Caller) -> None:
        read = leases.post(lease("a", {"holderIdentity": ""}))

        one = leases.put("a", lease("a", {"holderIdentity": "1"}, resourceVersion=read.version))
        two = leases.put("a", lease("a", {"holderIdentity": "2"}, resourceVersion=read.version))

        assert (one.status, two.outcome) == (200, (409, "Conflict"))
        assert leases.get("a").document["spec"] == {"holderIdentity": "1"}

    def test_no_swap_of_many_at_once_is_lost(self, leases: Caller) -> None:
        leases.post(lease("a", {"leaseTransitions": 0}))

        def count_one(_: int) -> int:
            for tries in range(1, 1000):
                read = leases.get("a")
                count = read.document["spec"]["leaseTransitions"] + 1
                written = lease("a", {"leaseTransitions": count}, resourceVersion=read.version)
                if leases.put("a", written).status == 200:
                    return tries
            raise AssertionError("nobody ever wins")

        with ThreadPoolExecutor(8) as pool:
            tries = list(pool.map(count_one, range(40)))

        assert len(tries) == 40
        assert leases.get("a").document["spec"] == {"leaseTransitions": 40}

    @pytest.mark.parametrize(
        ("sent", "kept"),
        [
            ("2031-05-01T12:00:00.000000Z", "2031-05-01T12:00:00.000000Z"),
            ("2031-05-01T12:00:00.123456+02:00", "2031-05-01T10:00:00.123456Z"),
            ("2031-01-01T00:00:00.000001-00:30", "2031-01-01T00:30:00.000001Z"),
            ("2031-05-01T12:00:00,123456Z", "2031-05-01T12:00:00.123456Z"),
        ],
    )
    def test_times_have_six_digits_and_come_back_in_utc(
        self, leases: Caller, sent: str, kept: str
    ) -> None:
        said = leases.post(lease("a", {"renewTime": sent, "acquireTime": None}))

        assert (said.status, said.document["spec"]) == (201, {"renewTime": kept})

    @pytest.mark.parametrize(
        "sent",
        [
            "",
            "2031-05-01T12:00:00Z",
            "2031-05-01T12:00:00.123Z",
            "2031-05-01T12:00:00.1234567Z",
            "2031-05-01T12:00:00.123456",
            "2031-05-01 12:00:00.123456Z",
            "2031-05-01T12:00:60.123456Z",
            "2031-02-30T12:00:00.123456Z",
            5,
        ],
    )
    def test_other_times_make_the_lease_unreadable(self, leases: Caller, sent: object) -> None:
        leases.post(lease("a", HELD))

        assert leases.post(lease("b", {"renewTime": sent})).outcome == (400, "BadRequest")
        assert leases.patch("a", {"spec": {"renewTime": sent}}).outcome == (422, "Invalid")

    @pytest.mark.parametrize(
        ("duration", "status"),
        [(1, 201), (0, 422), (-1, 422), ("5", 400), (1.5, 400), (True, 400), (2**31, 400)],
    )
    def test_a_duration_is_an_integer_above_zero(
        self, leases: Caller, duration: object, status: int
    ) -> None:
        assert leases.post(lease("a", {"leaseDurationSeconds": duration})).status == status

    def test_an_empty_holder_is_kept_and_null_is_not(self, leases: Caller) -> None:
        made = leases.post(lease("a", {"holderIdentity": "", "leaseTransitions": 0}))
        said = leases.patch("a", {"spec": {"holderIdentity": None}})

        assert made.document["spec"] == {"holderIdentity": "", "leaseTransitions": 0}
        assert said.document["spec"] == {"leaseTransitions": 0}

    def test_unknown_fields_of_the_spec_are_dropped(self, leases: Caller) -> None:
        made = leases.post(lease("a", {"holderIdentity": "x", "fence": 7}))

        assert made.document["spec"] == {"holderIdentity": "x"}
