"""Folders that several accounts use, where they share a data directory."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def share(path: Path) -> None:
    """Let those use a new folder who may use the one above, whatever this account's umask is."""
    above = path.parent.stat()
    if above.st_mode & stat.S_IWGRP:
        with suppress(PermissionError):  # not a member of the group above
            os.chown(path, -1, above.st_gid)
    path.chmod(0o700 | above.st_mode & 0o2070)
