"""Puts the stand-in in the place of ``elastic-blast``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path


def install(folder: Path) -> Path:
    """Write an executable ``elastic-blast`` into a folder, which is to come first on the PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "elastic-blast"
    words = [sys.executable, "-m", "blastyard.testing.elastic_blast"]
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path
