"""The processes of a team installation that are not the web's."""

from __future__ import annotations

from threading import Thread
from typing import Final

from blastyard.logline import log_to_stderr
from blastyard.service.step import LAST_STEPS_SECONDS
from blastyard.service.sweep import WORKER
from blastyard.settings import read_settings

_READY: Final = "blastyard worker is at work"


def worker() -> int:
    """Run searches that web replicas and commands have stored, until a signal.

    Several workers may run, here or on other machines, over one store: each search is looked after
    by one of them. At SIGTERM nothing new is begun; what waits or cannot go on without this process
    is handed over.
    """
    from blastyard.bootstrap.gate import this_process  # noqa: PLC0415  (help needs none of it)
    from blastyard.bootstrap.team import broker, serve_messages  # noqa: PLC0415
    from blastyard.bootstrap.yard import open_yard  # noqa: PLC0415

    settings = read_settings()
    log_to_stderr(settings.log_level, settings.log_format)
    app = broker(settings)
    yard = open_yard(settings, this_process(WORKER))
    labour = yard.make_worker(lambda _search: True)
    thread = Thread(target=labour.run, name="worker", daemon=True)
    try:
        thread.start()
        print(_READY, flush=True)
        serve_messages(app, yard, labour)
    finally:
        labour.stop()
        thread.join(LAST_STEPS_SECONDS)
        yard.close()
    return 0


def beat() -> int:
    """Have the workers look, every half minute, for searches that nobody looks after.

    One of them is enough; more do no harm.
    """
    from blastyard.bootstrap.team import broker  # noqa: PLC0415  (help needs none of it)

    settings = read_settings()
    log_to_stderr(settings.log_level, settings.log_format)
    app = broker(settings)  # says what is missing, before Celery is asked for more
    from blastyard.worker.celery_app import beat as send  # noqa: PLC0415

    print("blastyard beat is at work", flush=True)
    send(app)
    return 0
