"""blastyard: one front door for BLAST searches on a shared machine or cluster."""

from __future__ import annotations

__version__ = "0.1.0"
