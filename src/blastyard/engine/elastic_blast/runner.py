"""The submit command of this installation: prepared, run, and understood.

``prepare`` does what takes time and needs no turn at the gate: it writes files, and asks the
installed command, once, what it can. ``start`` belongs inside Gate A, under a deadline that its
caller moves as the submit lease is renewed; at the deadline everything of the command is ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from blastyard.engine.command import Command, Ending
from blastyard.engine.elastic_blast.answer import outcome
from blastyard.engine.elastic_blast.command import SubmitCommand
from blastyard.engine.elastic_blast.configuration import Order, Template, configuration
from blastyard.engine.elastic_blast.environment import command_environment
from blastyard.engine.elastic_blast.execution import Execution, Start
from blastyard.engine.elastic_blast.folder import SubmitFolder
from blastyard.engine.elastic_blast.kubeconfig import context_name, own_kubeconfig
from blastyard.engine.elastic_blast.probe import Probe, found_program, not_started
from blastyard.engine.guarded import GuardedCommand, NotStarted
from blastyard.engine.remote import Outcome
from blastyard.kube.config import Target


@dataclass(frozen=True, slots=True)
class Prepared:
    """A submission that only needs its turn."""

    order: Order
    folder: SubmitFolder
    argv: tuple[str, ...]
    environment: Mapping[str, str]


class Submission:
    """A submit command that runs. All methods may be called from any thread.

    It is a :class:`~blastyard.service.entrance.Running`: who has the submit lease moves its
    deadline and ends it. When this process ends, in whatever way, the command ends.
    """

    def __init__(self, execution: Execution, now: Callable[[], datetime]) -> None:
        self._execution = execution
        self._now = now

    @property
    def guarded(self) -> GuardedCommand:
        """The command itself: its processes, and what a watcher watches."""
        return self._execution.guarded

    def fileno(self) -> int:
        """A descriptor that turns readable when the command has ended."""
        return self._execution.fileno()

    def extend(self, deadline: float | None) -> None:
        """Move the deadline (monotonic seconds); ``None`` = none."""
        self._execution.extend(deadline)

    def end(self) -> None:
        """Have the command and all its descendants killed."""
        self._execution.end()

    def wait(self, timeout: float | None = None) -> Ending | None:
        """Block until nothing of it is left, or for so many seconds; how it ended, if it has."""
        return self._execution.wait(timeout)

    def outcome(self) -> Outcome | None:
        """What came of it; ``None`` while it runs."""
        ending = self._execution.poll()
        return None if ending is None else outcome(ending, self._execution.out(), self._now())

    def close(self) -> None:
        """Let go of its pipes; what still runs is killed."""
        self._execution.close()

    def __enter__(self) -> Submission:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Setup:
    """What the installation says about submitting."""

    command: SubmitCommand
    template: Template
    target: Target
    caller: Mapping[str, str]
    """This process's environment, of which the command gets what it needs."""


class SubmitRunner:
    """Makes submissions. ``now`` is wall-clock time, for an answer that names a date."""

    def __init__(
        self,
        setup: Setup,
        probe: Probe,
        now: Callable[[], datetime],
        start: Start = Execution.start,
    ) -> None:
        self._setup = setup
        self._probe = probe
        self._now = now
        self._start = start

    def prepare(self, order: Order, attempt: Path) -> Prepared:
        """Write the files of a submission below the folder of its attempt.

        Raises ``Misconfigured`` when no command can be run as the settings say, ``Unavailable``
        when the disk or the command does not answer.
        """
        setup = self._setup
        folder = SubmitFolder.below(attempt)
        environment = command_environment(setup.caller, folder, order.name)
        program = found_program(setup.command.program, environment)
        text = configuration(order, setup.template)
        folder.create(order.name, text, own_kubeconfig(setup.target))
        if setup.command.is_default:
            self._probe.require(program, environment)
        values = {
            "id": order.name.id,
            "cfg": str(folder.configuration),
            "context": context_name(setup.target),
            "namespace": setup.target.namespace,
        }
        return Prepared(order, folder, setup.command.argv(values), environment)

    def start(self, prepared: Prepared, deadline: float | None) -> Submission:
        """Run the command; returns when it runs. ``deadline`` is in monotonic seconds.

        Raises ``Misconfigured`` and ``Unavailable('terminal_exec_unavailable')`` when it certainly
        did not run.
        """
        command = Command(
            argv=prepared.argv,
            environment=prepared.environment,
            cwd=str(prepared.folder.work),
            record=str(prepared.folder.record),
        )
        try:
            return Submission(self._start(command, deadline), self._now)
        except (NotStarted, OSError) as error:
            raise not_started(prepared.argv[0], error) from error
