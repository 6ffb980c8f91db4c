"""Installing the Role, checking a credential, and clusters that cannot be used."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

from kube_stage import Stage
from operator_fixtures import (
    JOBS,
    LEASES,
    LEDGERS,
    READ,
    administrator,
    names,
    operator,
    reader,
    stage,
    with_token,
)
from operator_stage import Operator

from blastyard.kube import rbac

__all__ = ["administrator", "operator", "reader", "stage"]


# -- installing and checking -----------------------------------------------------------------------


def test_what_is_printed_is_what_kubectl_applies(administrator: Operator, stage: Stage) -> None:
    printed = administrator("install", "--dry-run", "--service-account", "runner").stdout
    as_json = administrator.json("install", "--dry-run", "--enforce")
    before = administrator("check")

    subprocess.run(
        [str(stage.plane.kubectl), "apply", "-f", "-"],
        env={"KUBECONFIG": administrator.environment["KUBECONFIG"]},
        input=printed,
        text=True,
        check=True,
        capture_output=True,
    )
    applied = administrator.json("install", "--service-account", "runner")["applied"]

    assert "kind: ValidatingAdmissionPolicy" not in printed
    assert len(as_json["items"]) == 7
    assert before.returncode == 0
    assert {each["kind"]: each["outcome"] for each in applied}["Role"] in ("changed", "unchanged")
    runner = f"/api/v1/namespaces/{stage.namespace}/serviceaccounts/runner"
    assert stage.plane.admin.finds(runner)


def test_installing_again_changes_nothing(administrator: Operator) -> None:
    first = administrator.json("install")["applied"]
    second = administrator("install").stdout

    assert {each["outcome"] for each in first} == {"created"}
    assert [line.split() for line in second.splitlines()[1:]] == [
        ["ServiceAccount", "blastyard", "unchanged"],
        ["Role", "blastyard", "unchanged"],
        ["RoleBinding", "blastyard", "unchanged"],
    ]


def test_nothing_is_installed_by_somebody_who_may_not(operator: Operator) -> None:
    code, error, said = operator.error("install")

    assert (code, error) == (6, "cluster_forbidden")
    assert "create roles.rbac.authorization.k8s.io" in said
    assert "--dry-run" in said


def test_no_cluster_is_needed_to_print_what_would_be_installed(tmp_path: Path) -> None:
    nobody = Operator.with_kubeconfig(tmp_path / "missing", tmp_path, BLASTYARD_NAMESPACE="lab")

    assert nobody("install", "--dry-run").returncode == 0
    assert nobody.error("install", "--dry-run", "--service-account", "No Such")[0] == 1


def test_the_check_passes_with_the_role(operator: Operator) -> None:
    assert operator("check").returncode == 0
    assert operator.json("check")["missing"] == []


def test_the_check_names_each_missing_verb_and_changes_nothing(
    reader: Operator, stage: Stage
) -> None:
    before = names(stage, LEASES, LEDGERS, JOBS)

    told = reader("check")
    shape = json.loads(reader("check", "--json").stdout)

    assert told.returncode == 6
    for each in rbac.needed(stage.namespace):
        for verb in each.verbs:
            line = f"  {verb} {each.resource}"
            assert (line in told.stdout) == (verb not in READ), line
    assert "add these rules to its Role" in told.stdout
    assert {each["verb"] for each in shape["missing"]}.isdisjoint(READ)
    assert all(set(rule["verbs"]).isdisjoint(READ) for rule in shape["rules_to_add"])
    assert names(stage, LEASES, LEDGERS, JOBS) == before


# -- a cluster that cannot be used -----------------------------------------------------------------


def test_a_kubeconfig_that_is_missing_is_said_to_be(tmp_path: Path) -> None:
    nobody = Operator.with_kubeconfig(tmp_path / "missing", tmp_path)

    for words in (["status"], ["ceiling", "4"], ["sweep"], ["check"], ["install"], ["watch"]):
        code, error, said = nobody.error(*words)
        assert (code, error) == (8, "cluster_misconfigured")
        assert "no such file is there" in said


def test_a_token_that_has_expired_is_refused_before_any_call(stage: Stage, tmp_path: Path) -> None:
    claims = base64.urlsafe_b64encode(b'{"exp":1000000000}').decode().rstrip("=")

    code, error, said = with_token(stage, f"e30.{claims}.c2ln", tmp_path).error("status")

    assert (code, error) == (8, "cluster_misconfigured")
    assert "expired at 2001-09-09" in said


def test_a_context_of_another_namespace_is_refused(operator: Operator) -> None:
    code, error, said = operator.on(BLASTYARD_NAMESPACE="other").error("status")

    assert (code, error) == (8, "cluster_misconfigured")
    assert "BLASTYARD_NAMESPACE is 'other'" in said


def test_a_credential_of_another_cluster_is_refused_and_never_called_busy(
    stage: Stage, tmp_path: Path
) -> None:
    code, error, said = with_token(stage, "of-another-cluster", tmp_path).error("status")

    assert (code, error) == (6, "cluster_forbidden")
    assert "401" in said
    assert "busy" not in said


def test_a_credential_without_the_right_is_told_what_to_grant(stage: Stage, tmp_path: Path) -> None:
    nobody = with_token(stage, stage.account([]), tmp_path)

    code, error, said = nobody.error("status")

    assert (code, error) == (6, "cluster_forbidden")
    assert f'in the namespace "{stage.namespace}"' in said
    assert "add the rule {" in said
    assert "busy" not in said


def test_a_server_that_does_not_answer_is_said_to_be_silent(
    stage: Stage, operator: Operator, tmp_path: Path
) -> None:
    path = Path(operator.environment["KUBECONFIG"])
    port = stage.plane.url.rpartition(":")[2]
    path.write_text(path.read_text().replace(f":{port}", ":1"))

    assert operator.error("status")[:2] == (8, "cluster_unavailable")
