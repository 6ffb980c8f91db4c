"""The pages: Jinja2 templates, everything in them escaped unless a template says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

FOLDER: Final = Path(__file__).parent / "templates"

_STATES: Final[Mapping[str, str]] = {
    "queued": "waiting",
    "admitting": "about to start",
    "submitting": "about to start",
    "running": "running",
    "collecting": "saving the result",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}


def number(value: float) -> str:
    """1234567 as 1,234,567."""
    return f"{value:,}"


def size(value: float) -> str:
    """Bytes in the unit that suits them."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:,.0f} {unit}" if unit == "bytes" else f"{value:,.1f} {unit}"
        value /= 1000
    raise AssertionError


def count(value: int, noun: str) -> str:
    """``1 sequence``, ``2,000 sequences``."""
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"


def moment(text: str | None) -> str:
    """An instant of the API, for reading: to the second, in UTC."""
    return f"{text[:10]} {text[11:19]} UTC" if text else ""


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, size=size, count=count, moment=moment)
    environment.globals["state_words"] = _STATES
    return environment


_ENVIRONMENT: Final = _environment()


def render(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page."""
    text = _ENVIRONMENT.get_template(template).render(values)
    return HTMLResponse(text, status, headers={"Cache-Control": "no-store"})
