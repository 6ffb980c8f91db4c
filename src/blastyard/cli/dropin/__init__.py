"""``blastyard blastn …``: BLAST+'s own command line, admitted.

A quick path: of blastyard it loads admission and the guardian, and neither web, nor ORM, nor
terminal libraries. :mod:`.line` reads the command line, :mod:`.review` looks at what BLAST+ would
answer wrongly, :mod:`.interrupt` turns signals into a clean end, :mod:`.run` does it all in order.
"""

from __future__ import annotations

from blastyard.cli.dropin.run import main

__all__ = ["main"]
