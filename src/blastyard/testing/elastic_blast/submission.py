"""One run of ``submit``, line by line."""

from __future__ import annotations

import configparser
import json
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from blastyard.domain.errors import Unavailable
from blastyard.testing.elastic_blast import result
from blastyard.testing.elastic_blast.answer import DEPENDENCY, Failure, Voice
from blastyard.testing.elastic_blast.cluster import Refused, SearchCluster
from blastyard.testing.elastic_blast.plan import Died, Plan, Script
from blastyard.testing.elastic_blast.result import Search
from blastyard.testing.foreign.api import Api, Forbidden, Unanswered
from blastyard.testing.foreign.time import Time
from blastyard.testing.plain_wire import Access, PlainWire

PASSING_SECONDS: Final = 15.0
"""After which it wants to be asked again when a program that it runs has failed."""
_KEY: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Asked:
    """The command line, and what of the environment counts."""

    cfg: Path
    key: str | None
    as_json: bool
    home: Path
    kubeconfig: Path
    plan: str


def submit(asked: Asked, time: Time) -> int:
    """The whole run; the exit code."""
    try:
        sections = _sections(asked.cfg)
        plan = Plan.read(asked.plan or sections.get("stand-in", "plan", fallback=""))
    except (configparser.Error, OSError, KeyError) as error:
        return Voice(Plan().each, as_json=asked.as_json).failed(Failure(1, str(error)))
    key = asked.key or f"job-{secrets.token_hex(16)}"
    run, notes = plan.run(key.lower())
    voice = Voice(run, as_json=asked.as_json)
    try:
        return _Submission(asked, Script(run, notes), voice, time).run(key, sections)
    except Died:
        return voice.failed(Failure.planned(run))
    except Failure as failure:
        return voice.failed(failure)
    except (Refused, Forbidden, Unanswered, Unavailable) as error:
        message = f"Subprocess failed: the command kubectl returned with exit code 1: {error}"
        return voice.failed(Failure(DEPENDENCY, message, "transient", PASSING_SECONDS))


class _Submission:
    """What is done, in its order; each line of it is one where it may die."""

    def __init__(self, asked: Asked, script: Script, voice: Voice, time: Time) -> None:
        self._asked = asked
        self._script = script
        self._run = script.run
        self._voice = voice
        self._time = time

    def run(self, key: str, sections: configparser.ConfigParser) -> int:
        """Raises :class:`Failure`, and what the API server says."""
        line = self._script.line
        line("begun")
        if not _KEY.fullmatch(key):
            raise Failure(1, f"idempotency_key must match DNS-1123: {key!r}")
        search = _search(key.lower(), sections)
        line("configuration read")
        self._voice.progress()
        if self._run.exit_code and not self._run.die_at:
            raise Failure.planned(self._run)
        if self._asked.as_json and (terminal := result.has_ended(search)):
            return self._voice.submitted(search.key, decision="already_done", terminal=terminal)
        access = self._rewritten()
        line("kubeconfig rewritten")
        wire = PlainWire(access, "elastic-blast-stand-in")
        try:
            self._make(search.key, SearchCluster(Api(wire, access.namespace)))
        finally:
            wire.close()
        if self._run.results:
            result.write(search, self._run)
            line("results written")
        code = self._voice.submitted(search.key)
        line("answered")
        return code

    def _make(self, key: str, cluster: SearchCluster) -> None:
        line = self._script.line
        if cluster.delete(key):
            line("old Jobs deleted")
        cluster.write_scripts(key)
        line("scripts written")
        if self._run.order == "finalizer-first":
            self._finalizer(key, cluster)
        if self._run.cold:
            cluster.make(key, "setup")
            line("setup made")
        if self._run.submit_job:
            cluster.make(key, "submit")
            line("submit made")
        for number in range(self._run.blast_jobs):
            cluster.make(key, "blast", number)
            line(f"blast {number} made")
        if self._run.order == "finalizer-last":
            self._finalizer(key, cluster)

    def _finalizer(self, key: str, cluster: SearchCluster) -> None:
        if self._run.finalizer_refused:
            raise Refused(f'jobs.batch "elb-finalizer-{key[-8:]}" is forbidden')
        self._time.wait(self._run.finalizer_delay)
        cluster.make(key, "finalizer")
        self._script.line("finalizer made")

    def _rewritten(self) -> Access:
        """Read the kubeconfig, and leave another in the home: without the namespace."""
        try:
            access = Access.read(self._asked.kubeconfig)
            document = json.loads(self._asked.kubeconfig.read_bytes())
        except (OSError, ValueError, KeyError, StopIteration) as error:
            raise Failure(DEPENDENCY, f"kubectl: no kubeconfig: {error!r}") from error
        for entry in document["contexts"]:
            entry["context"].pop("namespace", None)
        home = self._asked.home / ".kube" / "config"
        home.parent.mkdir(parents=True, exist_ok=True)
        home.write_text(json.dumps(document), encoding="utf-8")
        return access


def _sections(cfg: Path) -> configparser.ConfigParser:
    """The configuration file, read as ElasticBLAST does: with interpolation."""
    parser = configparser.ConfigParser()
    with cfg.open(encoding="utf-8") as file:
        parser.read_file(file)
    return parser


def _search(key: str, sections: configparser.ConfigParser) -> Search:
    """What it needs of the file. Raises :class:`Failure`."""
    try:
        blast = sections["blast"]
        search = Search(key, blast["program"], blast["db"], blast["queries"], blast["results"])
    except (configparser.Error, KeyError) as error:
        raise Failure(1, f"the configuration has no {error}") from error
    for path in search.queries.split():
        if not Path(path).is_file():
            raise Failure(1, f"Query input {path} is not readable or does not exist")
    return search
