"""``python -m blastyard`` is the command ``blastyard``."""

from __future__ import annotations

import sys

from blastyard.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
