"""What `serve` does: one service a data directory, on a loopback address."""

from __future__ import annotations

from functools import partial

from blastyard.bootstrap.gate import this_process
from blastyard.bootstrap.yard import open_yard
from blastyard.cli import report
from blastyard.cli.session import visited
from blastyard.http.listener import Listener
from blastyard.http.server import run as serve
from blastyard.http.server import running_service
from blastyard.logline import log_to_stderr
from blastyard.service.sweep import SERVICE, WEB
from blastyard.settings import Settings


def run(settings: Settings, host: str, port: int, *, as_json: bool) -> int:
    """Serve until a signal; says at once where a service is that runs already."""
    log_to_stderr(settings.log_level, settings.log_format)
    there = _running(settings)
    if there:
        _tell(there, "is already served", as_json=as_json)
        return 0
    with Listener.bind(host, port) as listener:
        yard = open_yard(settings, this_process(SERVICE, listener.address))
        serve(yard, listener, lambda address: _tell(address, "is served", as_json=as_json))
    return 0


def replica(settings: Settings, host: str, port: int, *, as_json: bool) -> int:
    """Serve until a signal, and leave the searches to workers."""
    from blastyard.bootstrap.team import broker  # noqa: PLC0415  (brings Celery)

    log_to_stderr(settings.log_level, settings.log_format)
    app = broker(settings)  # says what is missing, before Celery is asked for more
    from blastyard.worker.celery_app import announce  # noqa: PLC0415

    with Listener.bind(host, port) as listener:
        me = this_process(WEB, listener.address)
        yard = open_yard(settings, me, announce=partial(announce, app))
        serve(yard, listener, lambda address: _tell(address, "is served", as_json=as_json))
    return 0


def _running(settings: Settings) -> str:
    with visited(settings) as yard:
        return running_service(yard.searches)


def _tell(address: str, how: str, *, as_json: bool) -> None:
    if as_json:
        report.print_json({"address": address})
    else:
        print(f"blastyard {how} at {address}", flush=True)
