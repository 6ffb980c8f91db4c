"""`blastyard exec` against a real API server."""

from __future__ import annotations

from gate_stage import Lab
from waiting_stage import until

from blastyard.admission.ledger import HoldState


def test_a_submit_command_runs_inside_gate_a_and_its_search_keeps_the_slot(lab: Lab) -> None:
    script = lab.submit_script()

    ended = lab.run("exec", "--search-id", "job-one", "--", str(script), "{id}")

    assert (ended.returncode, ended.stderr) == (0, "")
    hold = lab.ledger().holds["job-one"]
    assert (hold.state, hold.watched) == (HoldState.SUBMITTED, True)
    assert lab.markers("job-one") == {("companion", "submit")}
    assert lab.holder() == ""


def test_the_slot_is_free_again_when_the_search_has_ended(lab: Lab) -> None:
    script = lab.submit_script()
    lab.run("exec", "--search-id", "job-one", "--", str(script), "{id}")
    watcher = lab.installation()
    lab.finish("job-one")

    def cleared() -> bool:
        watcher.opened.tend()
        return not lab.ledger().holds and not lab.markers("job-one")

    until(cleared)
