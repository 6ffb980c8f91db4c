"""A search that runs in the cluster, from its submission to its result."""

from __future__ import annotations

from remote_stage import ANSWER, Remote

from blastyard.domain.job import State


def test_a_search_is_submitted_followed_and_collected(remote: Remote) -> None:
    service = remote.start()
    search_id = remote.submit_to(service)

    running = remote.reaches(search_id, State.RUNNING)
    remote.finish(search_id)
    search = remote.ended(search_id)

    assert running.remote is not None
    assert search.state is State.COMPLETED, search.error
    assert remote.result(search_id) == ANSWER
    assert remote.states(search_id) == [
        State.QUEUED,
        State.ADMITTING,
        State.SUBMITTING,
        State.RUNNING,
        State.COLLECTING,
        State.COMPLETED,
    ]
    assert remote.elastic.cluster.jobs(running.remote.id) == []
