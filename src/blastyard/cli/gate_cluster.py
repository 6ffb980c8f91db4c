"""`gate install` and `gate check`: what blastyard may do in a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from blastyard.cli import option, report, table
from blastyard.cli.gate_scene import refuse_on_machine
from blastyard.cli.session import settings_of_command
from blastyard.domain.errors import CODES

if TYPE_CHECKING:
    from blastyard.bootstrap.permission import Checked, Wish
    from blastyard.settings import Settings

ACCOUNT: Final = "blastyard"


def install(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be applied, for kubectl.")
    ] = False,
    enforce: Annotated[
        bool,
        typer.Option("--enforce", help="Also the admission policies; needs rights in the cluster."),
    ] = False,
    service_account: Annotated[
        str, typer.Option("--service-account", metavar="NAME", help="Who gets the Role.")
    ] = ACCOUNT,
    as_json: option.AsJson = False,
) -> int:
    """Make the Role that blastyard needs in the namespace, and an account that has it.

    With `--enforce` also two admission policies, by which the API server itself refuses what a
    submitter that has lost its turn would create.
    """
    settings = settings_of_command()
    refuse_on_machine(settings, "`gate install`")
    from blastyard.bootstrap.permission import Wish  # noqa: PLC0415  (brings HTTP)

    wish = Wish(service_account, enforce)
    if dry_run:
        return _print(settings, wish, as_json=as_json)
    return _apply(settings, wish, as_json=as_json)


def _print(settings: Settings, wish: Wish, *, as_json: bool) -> int:
    from blastyard.bootstrap.permission import manifests, rendered  # noqa: PLC0415

    wanted = manifests(settings, wish)
    if as_json:  # kubectl reads this as well
        report.print_json({"apiVersion": "v1", "kind": "List", "items": wanted})
    else:
        print(rendered(wanted), end="")
    return 0


def _apply(settings: Settings, wish: Wish, *, as_json: bool) -> int:
    from blastyard.bootstrap.permission import apply  # noqa: PLC0415

    done = apply(settings, wish)
    if as_json:
        shapes = [
            {"kind": each.kind, "name": each.name, "outcome": each.outcome} for each in done.applied
        ]
        report.print_json({"namespace": done.namespace, "applied": shapes})
    else:
        rows = [[each.kind, each.name, each.outcome] for each in done.applied]
        table.print_table(["KIND", "NAME", "OUTCOME"], rows)
    return 0


def check(as_json: option.AsJson = False) -> int:
    """Ask the API server whether this credential may do all that blastyard needs; change nothing.

    Exit code 6 when something is missing; each missing verb is named.
    """
    settings = settings_of_command()
    refuse_on_machine(settings, "`gate check`")
    from blastyard.bootstrap.permission import check as check_rights  # noqa: PLC0415

    checked = check_rights(settings)
    if as_json:
        report.print_json(_shape(checked))
    else:
        _tell(checked)
    return CODES["cluster_forbidden"].exit_code if checked.missing else 0


def _shape(checked: Checked) -> dict[str, Any]:
    return {
        "namespace": checked.namespace,
        "asked": len(checked.verdicts),
        "missing": [
            {
                "verb": each.access.verb,
                "group": each.access.group,
                "resource": each.access.resource,
                "name": each.access.name or None,
                "reason": each.reason,
            }
            for each in checked.missing
        ],
        "rules_to_add": checked.rules,
    }


def _tell(checked: Checked) -> None:
    from blastyard.bootstrap.permission import rendered  # noqa: PLC0415

    asked, where = len(checked.verdicts), checked.namespace
    if not checked.missing:
        print(f"this credential may do all {asked} things that are needed in {where}")
        return
    print(f"{len(checked.missing)} of {asked} things are missing in {where}:")
    for verdict in checked.missing:
        reason = f" ({verdict.reason})" if verdict.reason else ""
        print(f"  {verdict.access}{reason}")
    print("\nadd these rules to its Role, or apply what `blastyard gate install --dry-run` prints:")
    print(rendered([checked.rules]), end="")
