"""Every setting, its unit and its default: the only reader of the environment.

Names that begin with ``BLAST_``, ``SUBMIT_`` or ``CELERY_`` are shared with other programs on the
same cluster; ours begin with ``BLASTYARD_``. All problems are reported at once. An unknown value of
a choice is an error, never a silent default.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from blastyard.domain.errors import Misconfigured
from blastyard.domain.search import USER_LENGTH

SHARED_HOME: Final = Path("/var/lib/blastyard")
EXEC_WAIT_SECONDS: Final = 1800

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Port = Annotated[int, Meta(ge=0, le=65535)]
Nice = Annotated[int, Meta(ge=0, le=19)]
Flag = Literal["true", "false", "1", "0", "yes", "no", ""]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The environment, typed. Each field's variable stands in :data:`VARIABLES`."""

    home: str = ""
    path: str = "/usr/local/bin:/usr/bin:/bin"
    user: str = ""
    host: str = "127.0.0.1"
    port: Port = 8642
    engine: Literal["local", "elastic-blast"] = "local"
    submit_command: str = ""
    submit_template: str = ""
    results_url: str = ""
    store_url: str = ""
    store_table: Annotated[str, Meta(pattern="^[A-Za-z][A-Za-z0-9]{2,62}$")] = "blastyard"
    redis_url: str = ""
    coord_backend: Literal["", "k8s", "redis"] = ""
    gate_enabled: Flag = ""
    namespace: str = ""
    kube_context: str = ""
    kubeconfig: str = ""
    max_run_concurrency: Count = 3
    submit_lease_ttl_seconds: Positive = 900
    lease_clock_skew_seconds: Count = 30
    lease_seconds: Positive = 30
    submit_exec_timeout_seconds: Positive = 600
    task_soft_time_limit: str = "3300"
    task_time_limit: str = "3600"
    submit_slot_wait_max_seconds: Count | None = None
    capacity_wait_max_seconds: Count | None = None
    nice: Nice = 10
    threads: Count = 0
    search_memory_mb: Count = 0
    search_cpu_seconds: Count = 0
    search_output_mb: Count = 20_000
    query_max_mb: Positive = 2_000
    retention_days: Count = 0
    retention_gb: Count = 0
    strict: Flag = ""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    metrics_file: str = ""
    debug: Flag = ""

    @property
    def is_debug(self) -> bool:
        """Whether an unexpected error is shown with its traceback."""
        return self.debug in ("true", "1", "yes")

    @property
    def is_strict(self) -> bool:
        """Whether the drop-in refuses what it otherwise only warns of."""
        return self.strict in ("true", "1", "yes")

    @property
    def directory(self) -> Path:
        """The data directory: the shared one where this account may write, else its own."""
        if self.home:
            return Path(self.home).expanduser().absolute()
        if SHARED_HOME.is_dir() and os.access(SHARED_HOME, os.W_OK):
            return SHARED_HOME
        return Path(_own_home())

    @property
    def on_cluster(self) -> bool:
        """Whether admission is decided in a Kubernetes namespace; that wins over all else."""
        return self.coord_backend == "k8s"

    @property
    def is_remote(self) -> bool:
        """Whether searches are handed to a cluster, where they outlive whoever submitted them."""
        return self.engine == "elastic-blast"

    @property
    def on_redis(self) -> bool:
        """Whether admission is decided in Redis: named, or by the older switch alone."""
        if self.coord_backend:
            return self.coord_backend == "redis"
        return self.gate_is_enabled

    @property
    def gate_is_enabled(self) -> bool:
        """The older switch: with Redis, the ceiling holds as well as the submit mutex."""
        return self.gate_enabled in ("true", "1", "yes")

    @property
    def waits(self) -> tuple[timedelta | None, timedelta | None]:
        """How long a search may wait for the submit slot and for capacity; ``None`` = for ever."""
        return (
            _span(self.submit_slot_wait_max_seconds),
            _span(self.capacity_wait_max_seconds),
        )

    @property
    def exec_waits(self) -> tuple[timedelta | None, timedelta | None]:
        """The same for a command that has no place in a store: half an hour each, if not said."""
        slot, capacity = self.submit_slot_wait_max_seconds, self.capacity_wait_max_seconds
        return (
            _span(EXEC_WAIT_SECONDS if slot is None else slot),
            _span(EXEC_WAIT_SECONDS if capacity is None else capacity),
        )


VARIABLES: Final[Mapping[str, str]] = {
    "home": "BLASTYARD_HOME",
    "path": "PATH",
    "user": "BLASTYARD_USER",
    "host": "BLASTYARD_HOST",
    "port": "BLASTYARD_PORT",
    "engine": "BLASTYARD_ENGINE",
    "submit_command": "BLASTYARD_SUBMIT_COMMAND",
    "submit_template": "BLASTYARD_SUBMIT_TEMPLATE",
    "results_url": "BLASTYARD_RESULTS_URL",
    "store_url": "BLASTYARD_STORE_URL",
    "store_table": "BLASTYARD_STORE_TABLE",
    "redis_url": "BLASTYARD_REDIS_URL",
    "gate_enabled": "BLAST_GATE_ENABLED",
    "task_soft_time_limit": "CELERY_TASK_SOFT_TIME_LIMIT",
    "task_time_limit": "CELERY_TASK_TIME_LIMIT",
    "coord_backend": "BLAST_COORD_BACKEND",
    "namespace": "BLASTYARD_NAMESPACE",
    "kube_context": "BLASTYARD_KUBE_CONTEXT",
    "kubeconfig": "KUBECONFIG",
    "max_run_concurrency": "BLAST_MAX_RUN_CONCURRENCY",
    "submit_lease_ttl_seconds": "BLAST_SUBMIT_LEASE_TTL_SECONDS",
    "lease_clock_skew_seconds": "BLAST_LEASE_CLOCK_SKEW_SECONDS",
    "lease_seconds": "BLASTYARD_LEASE_SECONDS",
    "submit_exec_timeout_seconds": "SUBMIT_EXEC_TIMEOUT_SECONDS",
    "submit_slot_wait_max_seconds": "BLAST_SUBMIT_SLOT_WAIT_MAX_SECONDS",
    "capacity_wait_max_seconds": "BLAST_CAPACITY_WAIT_MAX_SECONDS",
    "nice": "BLASTYARD_NICE",
    "threads": "BLASTYARD_THREADS",
    "search_memory_mb": "BLASTYARD_SEARCH_MEMORY_MB",
    "search_cpu_seconds": "BLASTYARD_SEARCH_CPU_SECONDS",
    "search_output_mb": "BLASTYARD_SEARCH_OUTPUT_MB",
    "query_max_mb": "BLASTYARD_QUERY_MAX_MB",
    "retention_days": "BLASTYARD_RETENTION_DAYS",
    "retention_gb": "BLASTYARD_RETENTION_GB",
    "strict": "BLASTYARD_STRICT",
    "log_level": "BLASTYARD_LOG_LEVEL",
    "log_format": "BLASTYARD_LOG_FORMAT",
    "metrics_file": "BLASTYARD_METRICS_FILE",
    "debug": "BLASTYARD_DEBUG",
}


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process. Raises ``Misconfigured`` naming every wrong variable."""
    given = os.environ if environment is None else environment
    values: dict[str, object] = {}
    problems: list[str] = []
    for field in msgspec.structs.fields(Settings):
        text = given.get(VARIABLES[field.name])
        if text is None or (text == "" and field.name != "coord_backend"):
            continue
        try:
            values[field.name] = msgspec.convert(text.strip(), field.type, strict=False)
        except msgspec.ValidationError as error:
            reason = str(error).replace("`", "")
            problems.append(f"{VARIABLES[field.name]}={text!r}: {reason}")
    settings = Settings(**values) if not problems else None  # type: ignore[arg-type]
    problems += _contradictions(settings) if settings else []
    if problems or settings is None:
        raise Misconfigured(
            "settings_invalid",
            "; ".join(problems),
            "correct or unset the variables; docs/settings.md says what each may be",
        )
    return settings


def _contradictions(settings: Settings) -> list[str]:
    problems = []
    if len(settings.user) > USER_LENGTH or not settings.user.isprintable():
        problems.append(f"BLASTYARD_USER must be at most {USER_LENGTH} printable characters")
    file = Path(settings.metrics_file)
    if settings.metrics_file and not (file.is_absolute() and file.suffix == ".prom"):
        problems.append("BLASTYARD_METRICS_FILE must be an absolute path that ends in .prom")
    if settings.submit_exec_timeout_seconds >= settings.submit_lease_ttl_seconds:
        problems.append("SUBMIT_EXEC_TIMEOUT_SECONDS must be below BLAST_SUBMIT_LEASE_TTL_SECONDS")
    if not 20 <= settings.lease_seconds < settings.submit_lease_ttl_seconds:
        problems.append(
            "BLASTYARD_LEASE_SECONDS must be at least 20 and below BLAST_SUBMIT_LEASE_TTL_SECONDS"
        )
    return problems + list(_remote_contradictions(settings))


def _remote_contradictions(settings: Settings) -> Iterator[str]:
    """What is wrong with searches that are handed to a cluster."""
    if not settings.is_remote:
        return
    if not settings.on_cluster:
        yield "BLASTYARD_ENGINE=elastic-blast needs BLAST_COORD_BACKEND=k8s"
    if not (settings.results_url or settings.submit_template):
        yield (
            "BLASTYARD_ENGINE=elastic-blast needs BLASTYARD_RESULTS_URL, such as /data/results or "
            "s3://bucket/results"
        )
    if settings.submit_template and not Path(settings.submit_template).is_absolute():
        yield "BLASTYARD_SUBMIT_TEMPLATE must be an absolute path"


def caller_environment() -> dict[str, str]:
    """This process's environment, for a command that runs as if its caller had started it."""
    return dict(os.environ)


def account_name() -> str:
    """The operating system's name for the account of this process, or its number."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _span(seconds: int | None) -> timedelta | None:
    return timedelta(seconds=seconds) if seconds else None


def _own_home() -> str:
    base = os.environ.get("XDG_DATA_HOME") or str(Path("~/.local/share").expanduser())
    return str(Path(base) / "blastyard")
