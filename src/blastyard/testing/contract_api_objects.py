"""What an API server does with objects of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
import pytest

from blastyard.kube.wire import Call
from blastyard.testing.contract_api import (
    MERGE_PATCH,
    ApiContract,
    ApiUnderTest,
    Caller,
    Said,
    config_map,
    let_a_second_pass,
    path_of,
)


class ObjectContract(ApiContract):
    """What is true of every kind; shown with ConfigMaps, which have no rules of their own."""

    @pytest.fixture
    def maps(self, api: ApiUnderTest) -> Caller:
        """ConfigMaps."""
        return Caller(api, "configmaps")

    def test_a_created_object_comes_back_as_it_was_sent(self, maps: Caller) -> None:
        body = "".join(f"line {n}\n" for n in range(100)) + 'é \\ " \t'
        made = maps.post(config_map("a", {"ledger": body}, labels={"x": "y"}))

        found = maps.get("a")

        assert (made.status, found.status) == (201, 200)
        assert found.document == made.document
        assert found.document["data"] == {"ledger": body}
        assert found.document["metadata"]["labels"] == {"x": "y"}
        assert (found.document["kind"], found.document["apiVersion"]) == ("ConfigMap", "v1")

    def test_answers_tell_the_servers_time_in_whole_seconds(self, maps: Caller) -> None:
        made = maps.post(config_map("a", {}))

        created = datetime.fromisoformat(made.document["metadata"]["creationTimestamp"])
        assert made.date is not None
        assert made.date.microsecond == created.microsecond == 0
        assert abs((made.date - created).total_seconds()) <= 1

    def test_a_name_is_given_once(self, maps: Caller) -> None:
        maps.post(config_map("a", {"n": "1"}))

        assert maps.post(config_map("a", {"n": "2"})).outcome == (409, "AlreadyExists")
        assert maps.get("a").document["data"] == {"n": "1"}

    def test_nothing_is_created_where_there_is_no_namespace(self, api: ApiUnderTest) -> None:
        elsewhere = path_of("configmaps", "no-such-namespace")
        body = msgspec.json.encode(config_map("a", {}))

        said = Said(api.wire.send(Call("POST", elsewhere, body=body)))
        listed = Said(api.wire.send(Call("GET", elsewhere)))

        assert said.outcome == (404, "NotFound")
        assert said.document["details"]["kind"] == "namespaces"
        assert (listed.status, listed.names) == (200, [])

    @pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
    def test_what_is_not_there_is_404_by_its_own_name(self, maps: Caller, method: str) -> None:
        kind = MERGE_PATCH if method == "PATCH" else "application/json"
        body = None if method in ("GET", "DELETE") else config_map("a", {}, resourceVersion="7")

        said = maps.call(method, "a", body, kind=kind)

        assert said.outcome == (404, "NotFound")
        assert said.document["details"] == {"name": "a", "kind": "configmaps"}

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            (b"", 400),
            (b"{", 400),
            (b"[]", 400),
            ({"metadata": {"name": "a"}, "data": {"x": 5}}, 400),
            ({"metadata": {"name": 5}}, 400),
            ({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {}}, 400),
            ({"metadata": {"name": "a", "namespace": "elsewhere"}}, 400),
            ({"metadata": {}}, 422),
            ({"metadata": {"name": "Not_A_Name"}}, 422),
            ({"metadata": {"name": "a", "labels": {"x": "not a value"}}}, 422),
            ({"metadata": {"name": "a", "labels": {"x": "y" * 64}}}, 422),
            ({"metadata": {"name": "a", "labels": {"/x": "y"}}}, 422),
            ({"metadata": {"name": "a"}, "data": {"not/a/key": "y"}}, 422),
            ({"metadata": {"name": "a"}, "data": {"x": "y" * (1024 * 1024 + 1)}}, 422),
            ({"metadata": {"name": "a"}, "data": {"x": "y" * 3 * 1024 * 1024}}, 413),
            ({"metadata": {"name": "a", "resourceVersion": "1"}}, 500),
        ],
    )
    def test_what_is_no_such_object_is_refused(
        self, maps: Caller, body: object, status: int
    ) -> None:
        assert maps.post(body).status == status
        assert "a" not in maps.list().names

    def test_fields_that_are_unknown_or_null_are_dropped(self, maps: Caller) -> None:
        strange = {"surprise": 1, "binaryData": None}
        made = maps.post({**config_map("a", {"x": "y"}, annotations=None, odd=1), **strange})

        assert made.status == 201
        assert made.document.keys() == {"kind", "apiVersion", "metadata", "data"}
        assert not made.document["metadata"].keys() & {"annotations", "odd"}

    def test_a_put_replaces_what_clients_may_write_and_nothing_else(self, maps: Caller) -> None:
        made = maps.post(config_map("a", {"x": "1"}, labels={"l": "1"}, annotations={"n": "1"}))
        early = "2001-01-01T00:00:00Z"

        said = maps.put("a", config_map("a", {"y": "2"}, creationTimestamp=early))

        metadata = said.document["metadata"]
        assert said.document["data"] == {"y": "2"}
        assert not metadata.keys() & {"labels", "annotations"}
        assert metadata["creationTimestamp"] == made.document["metadata"]["creationTimestamp"]
        assert said.uid == made.uid

    def test_a_put_at_another_version_or_uid_conflicts_and_changes_nothing(
        self, maps: Caller
    ) -> None:
        old = maps.post(config_map("a", {"x": "1"}))
        now = maps.put("a", config_map("a", {"x": "2"}, resourceVersion=old.version))

        stale = maps.put("a", config_map("a", {"x": "3"}, resourceVersion=old.version))
        other = maps.put("a", config_map("a", {"x": "3"}, uid="other", resourceVersion=now.version))

        assert (stale.outcome, other.outcome) == ((409, "Conflict"), (409, "Conflict"))
        assert maps.get("a").document == now.document

    def test_a_put_without_a_version_overwrites_a_config_map(self, maps: Caller) -> None:
        made = maps.post(config_map("a", {"x": "1"}))

        said = maps.put("a", config_map("a", {"x": "2"}))

        assert (said.status, said.document["data"]) == (200, {"x": "2"})
        assert int(said.version) > int(made.version)

    def test_a_put_names_the_object_it_is_sent_to(self, maps: Caller) -> None:
        maps.post(config_map("a", {}))

        assert maps.put("a", config_map("b", {})).status == 400
        assert maps.put("a", {"metadata": {}, "data": {}}).status == 400

    def test_a_merge_patch_changes_what_it_names(self, maps: Caller) -> None:
        maps.post(config_map("a", {"x": "1", "y": "1"}, labels={"l": "1"}))

        said = maps.patch("a", {"data": {"x": None, "z": "2"}, "metadata": {"labels": {"m": "2"}}})

        assert said.document["data"] == {"y": "1", "z": "2"}
        assert said.document["metadata"]["labels"] == {"l": "1", "m": "2"}

    def test_a_merge_patch_can_say_of_which_version_and_uid(self, maps: Caller) -> None:
        old = maps.post(config_map("a", {"x": "1"}))
        now = maps.patch("a", {"data": {"x": "2"}, "metadata": {"resourceVersion": old.version}})

        stale = maps.patch("a", {"data": {"x": "3"}, "metadata": {"resourceVersion": old.version}})
        other = maps.patch("a", {"data": {"x": "3"}, "metadata": {"uid": "other"}})

        assert now.status == 200
        assert (stale.outcome, other.outcome) == ((409, "Conflict"), (422, "Invalid"))
        assert maps.get("a").document == now.document

    def test_a_patch_of_no_known_kind_is_refused(self, maps: Caller) -> None:
        maps.post(config_map("a", {}))

        assert maps.call("PATCH", "a", {"data": {}}, kind="application/json").status == 415
        assert maps.call("PATCH", "a", b"[]", kind=MERGE_PATCH).status == 400
        assert maps.patch("a", {"data": {"x": 5}}).status == 422

    def test_a_deletion_can_say_of_which_version_and_uid(self, maps: Caller) -> None:
        old = maps.post(config_map("a", {"x": "1"}))
        now = maps.put("a", config_map("a", {"x": "2"}))

        for wrong in ({"uid": "other"}, {"resourceVersion": old.version}):
            assert maps.delete("a", preconditions=wrong).outcome == (409, "Conflict")
        right = maps.delete("a", preconditions={"uid": now.uid, "resourceVersion": now.version})

        assert (right.status, right.document["status"]) == (200, "Success")
        assert maps.get("a").status == 404

    def test_an_object_with_a_finalizer_is_marked_and_stays(self, maps: Caller) -> None:
        made = maps.post(config_map("a", {"x": "1"}, finalizers=["blastyard.test/held"]))

        marked = maps.delete("a")
        again = maps.delete("a")

        assert "deletionTimestamp" in marked.document["metadata"]
        assert int(marked.version) > int(made.version)
        assert again.document == marked.document == maps.get("a").document
        more = {"metadata": {"finalizers": ["blastyard.test/held", "blastyard.test/more"]}}
        assert maps.patch("a", more).status == 422
        assert maps.patch("a", {"data": {"x": "2"}}).document["data"] == {"x": "2"}
        assert maps.patch("a", {"metadata": {"finalizers": None}}).status == 200
        assert maps.get("a").status == 404

    def test_an_object_made_again_is_another_one(self, maps: Caller) -> None:
        first = maps.post(config_map("a", {}))
        maps.delete("a")
        second = maps.post(config_map("a", {}))

        assert first.uid != second.uid
        assert int(second.version) > int(first.version)

    def test_a_write_that_changes_nothing_is_none(self, api: ApiUnderTest, maps: Caller) -> None:
        made = maps.post(config_map("a", {"x": "1"}))
        let_a_second_pass(api)

        assert maps.put("a", config_map("a", {"x": "1"})).document == made.document
        assert maps.patch("a", {"data": {"x": "1"}}).document == made.document

    def test_a_write_that_changes_a_value_moves_the_time_it_tells(
        self, api: ApiUnderTest, maps: Caller
    ) -> None:
        made = maps.post(config_map("a", {"x": "1"}))
        let_a_second_pass(api)

        said = maps.put("a", config_map("a", {"x": "2"}))

        assert made.written_at is not None
        assert said.written_at is not None
        assert said.date is not None
        assert made.written_at < said.written_at <= said.date

    def test_a_write_that_only_removes_moves_no_time(self, api: ApiUnderTest, maps: Caller) -> None:
        made = maps.post(config_map("a", {"x": "1", "y": "1"}))
        let_a_second_pass(api)

        said = maps.put("a", config_map("a", {"x": "1"}))

        assert int(said.version) > int(made.version)
        assert said.written_at == made.written_at

    @pytest.mark.parametrize("entries", [[], [{}]])
    def test_an_object_that_tells_no_time_never_tells_one_again(
        self, maps: Caller, entries: Sequence[object]
    ) -> None:
        maps.post(config_map("empty", {}))
        maps.post(config_map("reset", {"x": "1"}))
        maps.put("reset", config_map("reset", {"x": "2"}, managedFields=entries))

        for name in ("empty", "reset"):
            said = maps.put(name, config_map(name, {"x": "3"}, labels={"new": "label"}))
            assert said.written_at is None
