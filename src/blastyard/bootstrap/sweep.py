"""One sweep, for commands that have a gate and nothing else.

Imports the search store, so it is imported late: only when a dead process is in the way.
"""

from __future__ import annotations

from blastyard.bootstrap.backend import open_search_store
from blastyard.bootstrap.gate import Home, OpenGate
from blastyard.engine.local import LocalEngine, LocalSettings
from blastyard.engine.port import Limits
from blastyard.engine.toolchain import Toolchain
from blastyard.results.files import SearchFiles
from blastyard.service.ending import Endings
from blastyard.service.sweep import Sweep
from blastyard.service.task import Tasks
from blastyard.settings import Settings


def sweep_once(settings: Settings, opened: OpenGate) -> None:
    """Free what dead processes hold; adopt nothing: their searches go back to the queue."""
    home = Home(settings.directory)
    store = open_search_store(settings, home.database)
    try:
        toolchain = Toolchain(settings.path)
        engine = LocalEngine(LocalSettings(nice=settings.nice, path=settings.path))
        tasks = Tasks(toolchain, store, SearchFiles(home.searches), threads=1, limits=Limits())
        endings = Endings(store, toolchain.version)
        Sweep(store, opened.gate, engine, tasks, endings)(lambda _: False)
    finally:
        store.close()
