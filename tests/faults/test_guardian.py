"""Nothing of a guarded command outlives its owner, its deadline or its own end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from blastyard.domain.clock import SystemClock
from blastyard.engine.command import Command, Ending
from blastyard.engine.guarded import GuardedCommand, NotStarted
from blastyard.engine.process import Process

PATIENCE_SECONDS = 20.0
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "KEPT": "yes"}

# Says its own number and that of a grandchild which left its session and its parent, then waits.
FAMILY = r"""
import os, sys, time
say = os.open(sys.argv[1], os.O_WRONLY)
wait, said = os.pipe()
middle = os.fork()
if middle == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        os.write(say, b"%d\n" % os.getpid())
        os.write(said, b"x")
        time.sleep(1000)
    os._exit(0)
os.waitpid(middle, 0)
os.read(wait, 1)
os.write(say, b"%d\n" % os.getpid())
if sys.argv[2] == "stay":
    time.sleep(1000)
"""

# An owner: starts the family under a guardian, says who the guardian is, then waits.
OWNER = r"""
import sys, threading, time
from blastyard.engine.command import Command
from blastyard.engine.guarded import GuardedCommand
deadline = None if sys.argv[1] == "never" else float(sys.argv[1])
command = Command(sys.argv[3:], {"PATH": "/usr/bin:/bin"})
started = []
def start():
    started.append(GuardedCommand.start(command, deadline))
if sys.argv[2] == "thread":
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
else:
    start()
print(started[0].guardian.pid, flush=True)
if sys.argv[2] == "fork":
    import os
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(1000)
sys.stdin.read()
"""


class Family:
    """A command with a runaway grandchild, and news of both through a named pipe."""

    def __init__(self, directory: Path) -> None:
        self.news = directory / "news"
        os.mkfifo(self.news)
        self._reader = os.open(self.news, os.O_RDWR | os.O_NONBLOCK)  # never at its end
        self._text = b""
        self._found: list[Process] = []

    def argv(self, then: str = "stay") -> list[str]:
        return [sys.executable, "-I", "-S", "-c", FAMILY, str(self.news), then]

    def members(self) -> list[Process]:
        """Grandchild and command, once both run."""
        while self._text.count(b"\n") < 2:
            ready, _, _ = select.select([self._reader], [], [], PATIENCE_SECONDS)
            assert ready, "the command never said that it runs"
            self._text += os.read(self._reader, 100)
        found = [Process.find(int(line)) for line in self._text.split()]
        self._found = [process for process in found if process is not None]
        return self._found

    def close(self) -> None:
        for process in self._found:
            process.send(signal.SIGKILL)
        os.close(self._reader)


class Owner:
    """A process that owns a guarded family."""

    def __init__(self, family: Family, deadline: float | None = None, how: str = "main") -> None:
        source = Path(__file__).parents[2] / "src"
        self.process = subprocess.Popen(
            [
                sys.executable, "-c", OWNER, "never" if deadline is None else repr(deadline), how,
                *family.argv(),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**ENVIRONMENT, "PYTHONPATH": str(source)},
        )  # fmt: skip
        self.guardian = self._said_process()

    def forked(self) -> Process:
        return self._said_process()

    def _said_process(self) -> Process:
        assert self.process.stdout is not None
        process = Process.find(int(self.process.stdout.readline()))
        assert process is not None
        return process

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def family(tmp_path: Path) -> Iterator[Family]:
    family = Family(tmp_path)
    yield family
    family.close()


def all_gone(processes: list[Process]) -> bool:
    return all(process.wait_gone(PATIENCE_SECONDS) for process in processes)


def run(
    argv: list[str], deadline: float | None = None, command: Command | None = None
) -> tuple[Ending, GuardedCommand]:
    guarded = GuardedCommand.start(command or Command(argv, ENVIRONMENT), deadline)
    ending = guarded.wait(PATIENCE_SECONDS)
    guarded.close()
    assert ending is not None
    return ending, guarded


def test_a_killed_owner_leaves_no_descendant_of_its_command(family: Family) -> None:
    """Faults A7 and R11."""
    owner = Owner(family)
    members = family.members()
    assert len(members) == 2
    owner.process.kill()

    assert all_gone([*members, owner.guardian])
    owner.close()


def test_a_fork_of_a_killed_owner_does_not_keep_the_command_alive(family: Family) -> None:
    """Fault A7: the fork holds a copy of the control pipe."""
    owner = Owner(family, how="fork")
    fork = owner.forked()
    members = family.members()
    owner.process.kill()

    assert all_gone([*members, owner.guardian])
    assert fork.is_alive()
    fork.send(signal.SIGKILL)
    owner.close()


def test_a_stopped_owner_cannot_keep_its_command_past_the_deadline(family: Family) -> None:
    """Fault A7."""
    owner = Owner(family, deadline=SystemClock().monotonic() + 1.0)
    members = family.members()
    owner.process.send_signal(signal.SIGSTOP)

    assert all_gone([*members, owner.guardian])
    assert owner.process.poll() is None
    owner.close()


def test_the_end_of_the_thread_that_started_a_command_does_not_end_it(family: Family) -> None:
    owner = Owner(family, how="thread")
    members = family.members()

    assert [process.wait_gone(0.3) for process in members] == [False, False]
    owner.process.communicate()
    assert all_gone(members)


def test_a_killed_guardian_takes_the_command_along_and_its_owner_the_rest(family: Family) -> None:
    guarded = GuardedCommand.start(Command(family.argv(), ENVIRONMENT))
    members = family.members()
    guarded.guardian.send(signal.SIGKILL)

    ending = guarded.wait(PATIENCE_SECONDS)
    assert ending is not None
    assert ending.ended_by == "guardian_gone"
    assert [process.is_alive() for process in members] == [False, False]
    guarded.close()


def test_a_killed_guardian_takes_the_command_along_though_its_owner_is_stopped(
    family: Family,
) -> None:
    owner = Owner(family)
    _, command = family.members()
    owner.process.send_signal(signal.SIGSTOP)
    owner.guardian.send(signal.SIGKILL)

    assert command.wait_gone(PATIENCE_SECONDS)
    owner.close()


def test_what_a_command_leaves_running_ends_with_it(family: Family) -> None:
    """Fault A8: the end is said after the last descendant is gone."""
    ending, _ = run(family.argv("go"))

    assert ending.by_itself
    assert ending.exit_code == 0
    assert not any(process.is_alive() for process in family.members())


def test_an_ended_command_has_no_descendant_when_its_end_is_said(family: Family) -> None:
    """Fault A8."""
    guarded = GuardedCommand.start(Command(family.argv(), ENVIRONMENT))
    members = family.members()
    assert guarded.poll() is None
    guarded.end()

    ending = guarded.wait(PATIENCE_SECONDS)
    assert ending is not None
    assert (ending.exit_code, ending.signal, ending.ended_by) == (None, signal.SIGKILL, "end")
    assert [process.is_alive() for process in members] == [False, False]
    guarded.close()


def test_signals_of_a_terminal_do_not_end_a_guardian_but_sigterm_does(family: Family) -> None:
    guarded = GuardedCommand.start(Command(family.argv(), ENVIRONMENT))
    members = family.members()
    guarded.guardian.send(signal.SIGINT)
    guarded.guardian.send(signal.SIGHUP)
    assert guarded.wait(0.2) is None
    guarded.guardian.send(signal.SIGTERM)

    ending = guarded.wait(PATIENCE_SECONDS)
    assert ending is not None
    assert ending.ended_by == "end"
    assert not any(process.is_alive() for process in members)
    guarded.close()


def test_a_deadline_that_is_over_ends_the_command_at_once() -> None:
    ending, _ = run(["sleep", "1000"], deadline=SystemClock().monotonic() - 1)

    assert ending.ended_by == "deadline"


def test_an_extension_that_comes_after_the_deadline_is_too_late() -> None:
    """Fault A7: a guardian that was stopped judges by its clock, not by what it was told late."""
    clock = SystemClock()
    deadline = clock.monotonic() + 0.2
    guarded = GuardedCommand.start(Command(["sleep", "1000"], ENVIRONMENT), deadline)
    guarded.guardian.send(signal.SIGSTOP)
    timer, _ = run(["sleep", "1000"], deadline=deadline)
    assert timer.ended_by == "deadline"
    guarded.extend(None)
    guarded.guardian.send(signal.SIGCONT)

    ending = guarded.wait(PATIENCE_SECONDS)
    assert ending is not None
    assert ending.ended_by == "deadline"
    guarded.close()


def test_a_deadline_may_be_moved_both_ways() -> None:
    clock = SystemClock()
    guarded = GuardedCommand.start(
        Command(["sleep", "1000"], ENVIRONMENT), clock.monotonic() + 1000
    )
    guarded.extend(None)
    guarded.extend(clock.monotonic() + 0.1)

    ending = guarded.wait(PATIENCE_SECONDS)
    assert ending is not None
    assert ending.ended_by == "deadline"
    guarded.close()


def test_a_pipe_is_not_held_open_by_a_command_that_was_started_meanwhile() -> None:
    """Many at once: each ends when its own owner lets go, whatever the others inherited."""
    commands: list[GuardedCommand] = []

    def start() -> None:
        commands.append(GuardedCommand.start(Command(["sleep", "1000"], ENVIRONMENT)))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, *others = commands
    first.close()

    assert first.command.wait_gone(PATIENCE_SECONDS)
    assert all(other.poll() is None for other in others)
    for other in others:
        other.close()
    assert all(other.command.wait_gone(PATIENCE_SECONDS) for other in others)


def test_standard_streams_and_other_descriptors_reach_the_command(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"from standard input\n")
    read_end, write_end = os.pipe()
    os.set_inheritable(read_end, True)
    os.write(write_end, b"from another descriptor\n")
    os.close(write_end)
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        script = f"cat; cat /dev/fd/{read_end}; echo to standard error >&2; exit 7"
        guarded = GuardedCommand.start(
            Command(
                ["sh", "-c", script], ENVIRONMENT,
                stdin=stdin.fileno(), stdout=stdout.fileno(), stderr=stdout.fileno(),
            )
        )  # fmt: skip
        ending = guarded.wait(PATIENCE_SECONDS)
        guarded.close()
    os.close(read_end)

    assert ending is not None
    assert (ending.exit_code, ending.shell_code) == (7, 7)
    assert (tmp_path / "out").read_text() == (
        "from standard input\nfrom another descriptor\nto standard error\n"
    )


def test_a_reader_sees_the_end_of_the_output_when_the_command_ends() -> None:
    read_end, write_end = os.pipe()
    guarded = GuardedCommand.start(Command(["echo", "hello"], ENVIRONMENT, stdout=write_end))
    os.close(write_end)
    with os.fdopen(read_end, "rb") as reader:
        assert reader.read() == b"hello\n"
    assert guarded.wait(PATIENCE_SECONDS)
    guarded.close()


def test_a_command_whose_reader_has_gone_ends_as_it_does_in_a_shell() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    ending, _ = run([], command=Command(["yes"], ENVIRONMENT, stdout=write_end))
    os.close(write_end)

    assert ending.signal == signal.SIGPIPE


def test_closed_standard_streams_do_no_harm() -> None:
    source = Path(__file__).parents[2] / "src"
    program = (
        "from blastyard.engine.command import Command\n"
        "from blastyard.engine.guarded import GuardedCommand\n"
        "command = Command(['sh', '-c', 'sleep 0.1; exit 5'], {'PATH': '/usr/bin:/bin'})\n"
        "raise SystemExit(GuardedCommand.start(command).wait().shell_code)"
    )
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, program],
        env={**ENVIRONMENT, "PYTHONPATH": str(source)},
        check=False,
        timeout=PATIENCE_SECONDS,
    )

    assert done.returncode == 5


def test_a_private_command_knows_only_what_it_was_given(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.set_inheritable(read_end, True)
    (tmp_path / "work").mkdir()
    with (tmp_path / "out").open("wb") as stdout:
        script = "pwd; echo $KEPT; nice; ls /proc/self/fd; env | grep -c SSH; trap"
        command = Command(
            ["sh", "-c", script], ENVIRONMENT, cwd=str(tmp_path / "work"), stdout=stdout.fileno(),
            nice=5, private=True,
        )  # fmt: skip
        run([], command=command)
    os.close(read_end)
    os.close(write_end)

    here, kept, nice, *descriptors, ssh = (tmp_path / "out").read_text().split()
    assert here == str(tmp_path / "work")
    assert kept == "yes"
    assert int(nice) == min(19, os.nice(0) + 5)
    assert descriptors == ["0", "1", "2", "3"]  # 3 is the folder that ls reads
    assert ssh == "0"


def test_the_end_of_standard_error_is_kept() -> None:
    script = "i=0; while [ $i -lt 20000 ]; do echo line $i >&2; i=$((i+1)); done"
    command = Command(["sh", "-c", script], ENVIRONMENT, tail_bytes=1000)
    ending, _ = run([], command=command)

    assert len(ending.stderr) == 1000
    assert ending.stderr.endswith("line 19998\nline 19999\n")


@pytest.mark.parametrize(
    ("command", "stage"),
    [
        (Command(["no-such-program"], ENVIRONMENT), "exec"),
        (Command(["/etc/passwd"], ENVIRONMENT), "exec"),
        (Command(["true"], ENVIRONMENT, cwd="/nowhere"), "chdir"),
    ],
)
def test_a_command_that_cannot_start_is_said_to_have_not(command: Command, stage: str) -> None:
    with pytest.raises(NotStarted) as caught:
        GuardedCommand.start(command)
    assert caught.value.stage == stage
    assert caught.value.number > 0


def test_a_limit_on_cpu_time_and_on_output_ends_a_command_by_its_signal(tmp_path: Path) -> None:
    busy = Command(["sh", "-c", "while :; do :; done"], ENVIRONMENT, cpu_seconds=1)
    assert run([], command=busy)[0].signal == signal.SIGXCPU

    writer = Command(
        ["sh", "-c", "exec head -c 100000 /dev/zero > out"], ENVIRONMENT, cwd=str(tmp_path),
        output_bytes=4096,
    )  # fmt: skip
    ending, _ = run([], command=writer)
    assert ending.signal == signal.SIGXFSZ
    assert ending.by_itself
    assert (tmp_path / "out").stat().st_size == 4096


def test_a_record_of_the_end_is_complete_or_absent(tmp_path: Path) -> None:
    record = tmp_path / "exit.json"
    command = Command(["sh", "-c", "exit 4"], ENVIRONMENT, record=str(record))
    ending, guarded = run([], command=command)

    assert ending.exit_code == 4
    assert f'"guardian": {guarded.guardian.pid}' in record.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["exit.json"]
