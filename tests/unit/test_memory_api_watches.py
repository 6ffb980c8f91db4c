"""Watches of the API server in memory do what a test tells them to."""

from __future__ import annotations

from itertools import islice

import msgspec
import pytest
from api_stage import Stage, types

from blastyard.domain.errors import Unavailable
from blastyard.testing.contract_api import Caller, config_map, lease
from blastyard.testing.scheduler import Process

QUIET = 10.0


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_watch_waits_in_virtual_time_and_hears_at_once(stage: Stage) -> None:
    heard: list[tuple[str, float]] = []

    def listen() -> None:
        for line in stage.watch().lines(QUIET):
            heard.extend((kind, stage.scheduler.now) for kind in types([line]))

    def write() -> None:
        for name in "ab":
            stage.scheduler.sleep(5.0)
            stage.maps.post(config_map(name, {}))

    with pytest.raises(Unavailable):
        stage.run(listen, write)
    assert heard == [("ADDED", 5.0), ("ADDED", 10.0)]
    assert stage.scheduler.now == 20.0
    assert stage.wire.watches.count() == 0


def test_the_watch_of_a_process_that_is_killed_is_gone(stage: Stage) -> None:
    process = Process("client")
    stage.scheduler.spawn(process, "task", lambda: list(stage.watch().lines(QUIET)))
    stage.scheduler.at(1.0, lambda: stage.scheduler.kill(process))
    stage.scheduler.run(lambda: False, 0.5)
    assert stage.wire.watches.count("configmaps") == 1

    stage.scheduler.run(lambda: False, 2.0)

    assert stage.wire.watches.count() == 0


def test_events_that_are_dropped_go_unheard_by_every_open_watch(stage: Stage) -> None:
    begin = str(stage.wire.revision)
    one, two = stage.watch(), stage.watch()
    stage.wire.watches.drop_next("configmaps", "DELETED")
    for name in "ab":
        stage.maps.post(config_map(name, {}))
        stage.maps.delete(name)

    for stream in (one, two):
        assert types(islice(stream.lines(QUIET), 3)) == ["ADDED", "ADDED", "DELETED"]
    later = stage.watch(resourceVersion=begin)
    assert types(islice(later.lines(QUIET), 2)) == ["ADDED", "DELETED"]


def test_events_of_other_resources_are_not_dropped(stage: Stage) -> None:
    stage.wire.watches.drop_next("jobs", count=2)
    stream = stage.watch()
    stage.maps.post(config_map("a", {}))

    assert types(islice(stream.lines(QUIET), 1)) == ["ADDED"]


def test_a_watch_that_the_server_ends_tells_first_what_happened(stage: Stage) -> None:
    stream = stage.watch()
    stage.maps.post(config_map("a", {}))
    stage.wire.watches.end("configmaps")
    stage.maps.post(config_map("b", {}))

    assert types(stream.lines(QUIET)) == ["ADDED"]


def test_a_watch_that_is_cut_tells_nothing_more(stage: Stage) -> None:
    stream = stage.watch()
    stage.maps.post(config_map("a", {}))
    stage.wire.watches.cut()

    with pytest.raises(Unavailable):
        next(stream.lines(QUIET))


def test_a_half_open_watch_neither_tells_nor_ends(stage: Stage) -> None:
    ended: list[float] = []

    def listen() -> None:
        stream = stage.watch(timeoutSeconds="5")
        stage.wire.watches.silence("configmaps")
        stage.maps.post(config_map("a", {}))
        with pytest.raises(Unavailable):
            list(stream.lines(QUIET))
        ended.append(stage.scheduler.now)

    stage.run(listen)

    assert ended == [QUIET]


def test_bookmarks_come_by_themselves_and_when_they_are_sent(stage: Stage) -> None:
    heard: list[tuple[str, str, float]] = []

    def listen() -> None:
        stream = stage.watch(allowWatchBookmarks="true", timeoutSeconds="100")
        Caller(stage, "leases").post(lease("elsewhere", {}))
        stage.wire.watches.bookmark("configmaps")
        for line in stream.lines(300.0):
            event = msgspec.json.decode(line)
            version = event["object"]["metadata"]["resourceVersion"]
            heard.append((event["type"], version, stage.scheduler.now))

    stage.run(listen)

    version = str(stage.wire.revision)
    assert heard == [("BOOKMARK", version, 0.0), ("BOOKMARK", version, 60.0)]


def test_watches_that_allow_no_bookmarks_get_none(stage: Stage) -> None:
    stream = stage.watch()
    stage.wire.watches.bookmark()
    stage.wire.watches.end()

    assert list(stream.lines(QUIET)) == []


def test_history_that_is_too_long_is_forgotten(stage: Stage) -> None:
    begin = str(stage.wire.revision)
    stage.maps.post(config_map("a", {}))
    for step in range(1001):
        stage.maps.put("a", config_map("a", {"x": str(step)}))

    assert types(stage.watch(resourceVersion=begin).lines(QUIET)) == ["ERROR"]
