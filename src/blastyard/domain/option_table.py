"""Every option of the five programs: allowed with its type and range, or forbidden with a reason.

The ranges are those of ``<program> -help`` of BLAST+ 2.12, narrowed where the program takes a
value and then fails or ignores it. Names are exact: BLAST+ knows neither abbreviations nor
another case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from blastyard.domain.program import Program

# NCBI's own service stops at 5,000; a tenfold of it still keeps one query's hits in memory.
MAX_TARGETS: Final = 50_000
_INT_MAX: Final = 2**31 - 1


class Kind(Enum):
    """How a value is read."""

    FLAG = auto()
    INTEGER = auto()
    REAL = auto()
    BOOLEAN = auto()
    CHOICE = auto()
    DUST = auto()
    SEG = auto()
    RANGE = auto()
    TAXIDS = auto()


_EXAMPLES: Final[Mapping[Kind, str]] = {
    Kind.FLAG: "nothing",
    Kind.BOOLEAN: "true or false",
    Kind.DUST: "yes, no, or 'level window linker' as in '20 64 1' (2-64, 8-64 and 1-32)",
    Kind.SEG: "yes, no, or 'window locut hicut' as in '12 2.2 2.5' (locut not above hicut)",
    Kind.RANGE: "start-stop, counted from 1, such as 1-500",
    Kind.TAXIDS: "NCBI taxonomy ids with commas between them, such as 9606,10090",
}


@dataclass(frozen=True, slots=True)
class OptionRule:
    """One allowed option. ``low`` and ``high`` bound a number, inclusive unless ``open_low``
    or ``open_high``; ``choices`` are exact unless ``any_case``."""

    kind: Kind
    low: float | None = None
    high: float | None = None
    open_low: bool = False
    open_high: bool = False
    choices: tuple[str, ...] = ()
    any_case: bool = False

    def range_text(self) -> str:
        """What a value must be, for a person."""
        if self.kind is Kind.CHOICE:
            return "one of " + ", ".join(self.choices)
        if self.kind not in (Kind.INTEGER, Kind.REAL):
            return _EXAMPLES[self.kind]
        noun = "a whole number" if self.kind is Kind.INTEGER else "a number"
        low = "" if self.low is None else f"{'above' if self.open_low else 'from'} {self.low:g}"
        high = ""
        if self.high is not None and self.high != _INT_MAX:
            high = f"{'below' if self.open_high else 'to'} {self.high:,.10g}"
        return " ".join(part for part in (noun, low, high) if part)


@dataclass(frozen=True, slots=True)
class Ban:
    """Why an option is not the submitter's, and what to use instead (may be empty)."""

    reason: str
    instead: str = ""


def _whole(low: int, high: int = _INT_MAX) -> OptionRule:
    return OptionRule(Kind.INTEGER, low, high)


def _choice(*choices: str, any_case: bool = False) -> OptionRule:
    return OptionRule(Kind.CHOICE, choices=choices, any_case=any_case)


_FLAG: Final = OptionRule(Kind.FLAG)
_BOOLEAN: Final = OptionRule(Kind.BOOLEAN)
_PERCENT: Final = OptionRule(Kind.REAL, 0, 100)
_NOT_NEGATIVE: Final = OptionRule(Kind.REAL, 0)
_POSITIVE: Final = OptionRule(Kind.REAL, 0, open_low=True)
_BEST_HIT: Final = OptionRule(Kind.REAL, 0, 0.5, open_low=True, open_high=True)
_GENETIC_CODES: Final = tuple(
    str(code) for code in (*range(1, 7), *range(9, 17), *range(21, 32), 33)
)
MATRICES: Final = (
    "BLOSUM45",
    "BLOSUM50",
    "BLOSUM62",
    "BLOSUM80",
    "BLOSUM90",
    "PAM30",
    "PAM70",
    "PAM250",
    "IDENTITY",
)

_EVERY: Final[Mapping[str, OptionRule]] = {
    "best_hit_overhang": _BEST_HIT,
    "best_hit_score_edge": _BEST_HIT,
    "culling_limit": _whole(0),
    "evalue": _POSITIVE,
    "lcase_masking": _FLAG,
    "line_length": _whole(1),
    "max_hsps": _whole(1),
    "max_target_seqs": _whole(1, MAX_TARGETS),
    "negative_taxids": OptionRule(Kind.TAXIDS),
    "num_alignments": _whole(0, MAX_TARGETS),
    "num_descriptions": _whole(0, MAX_TARGETS),
    "qcov_hsp_perc": _PERCENT,
    "query_loc": OptionRule(Kind.RANGE),
    "show_gis": _FLAG,
    "soft_masking": _BOOLEAN,
    "sorthits": _whole(0, 4),
    "sorthsps": _whole(0, 4),
    "subject_besthit": _FLAG,
    "taxids": OptionRule(Kind.TAXIDS),
    "window_size": _whole(0),
    "xdrop_ungap": _NOT_NEGATIVE,
}
_GAPPED: Final[Mapping[str, OptionRule]] = {
    "gapextend": _whole(0),
    "gapopen": _whole(0),
    "ungapped": _FLAG,
    "xdrop_gap": _NOT_NEGATIVE,
    "xdrop_gap_final": _NOT_NEGATIVE,
}
_PROTEIN: Final[Mapping[str, OptionRule]] = {
    "matrix": _choice(*MATRICES, any_case=True),
    "seg": OptionRule(Kind.SEG),
    "threshold": _POSITIVE,
    "word_size": _whole(2, 7),
}
_COMPOSITION: Final[Mapping[str, OptionRule]] = {
    "comp_based_stats": _choice("0", "1", "2", "3", "D", "d", "F", "f", "T", "t"),
    "use_sw_tback": _FLAG,
}
_STRAND: Final = _choice("both", "minus", "plus")
_TRANSLATED: Final[Mapping[str, OptionRule]] = {"max_intron_length": _whole(0)}
_WITHOUT_IDENTITY: Final = _choice(*MATRICES[:-1], any_case=True)


def _task(program: Program) -> Mapping[str, OptionRule]:
    return {"task": _choice(*program.tasks)}


ALLOWED: Final[Mapping[Program, Mapping[str, OptionRule]]] = {
    Program.BLASTN: {
        **_EVERY,
        **_GAPPED,
        **_task(Program.BLASTN),
        "dust": OptionRule(Kind.DUST),
        "min_raw_gapped_score": _whole(0),
        "no_greedy": _FLAG,
        "off_diagonal_range": _whole(0),
        "penalty": _whole(-_INT_MAX, -1),
        "perc_identity": _PERCENT,
        "reward": _whole(1),
        "strand": _STRAND,
        "template_length": _choice("16", "18", "21"),
        "template_type": _choice("coding", "coding_and_optimal", "optimal"),
        "word_size": _whole(4),
    },
    Program.BLASTP: {**_EVERY, **_GAPPED, **_PROTEIN, **_COMPOSITION, **_task(Program.BLASTP)},
    Program.BLASTX: {
        **_EVERY,
        **_GAPPED,
        **_PROTEIN,
        **_COMPOSITION,
        **_TRANSLATED,
        **_task(Program.BLASTX),
        "matrix": _WITHOUT_IDENTITY,
        "query_gencode": _choice(*_GENETIC_CODES),
        "strand": _STRAND,
    },
    Program.TBLASTN: {
        **_EVERY,
        **_GAPPED,
        **_PROTEIN,
        **_COMPOSITION,
        **_TRANSLATED,
        **_task(Program.TBLASTN),
        "db_gencode": _choice(*_GENETIC_CODES),
    },
    Program.TBLASTX: {
        **_EVERY,
        **_PROTEIN,
        **_TRANSLATED,
        "db_gencode": _choice(*_GENETIC_CODES),
        "query_gencode": _choice(*_GENETIC_CODES),
        "strand": _STRAND,
        "word_size": _whole(2, 5),
    },
}

_OURS: Final = "blastyard sets it"
_PATH: Final = "it names a file on the machine that searches"
_NETWORK: Final = "it sends the search over the network"
_STATISTICS: Final = "it changes how E-values are computed"
_SUBSET: Final = "Use -taxids, or register the part of the database as a database of its own."
_DROP_IN: Final = "Call the program through 'blastyard PROGRAM …', which takes every local option."

BANNED: Final[Mapping[str, Ban]] = {
    "db": Ban(_OURS, "Name the database with -d NAME."),
    "query": Ban(_OURS, "Name the query with -q FILE, or -q - for standard input."),
    "out": Ban(_OURS, "Name the output with -o FILE."),
    "outfmt": Ban(_OURS, "Choose the format with --format."),
    "subject": Ban(_PATH, "Register the sequences with 'blastyard db add', or use the drop-in."),
    "subject_loc": Ban("it belongs to -subject", _DROP_IN),
    "num_threads": Ban(_OURS, "Each search gets its share of the cores."),
    "mt_mode": Ban(_OURS, "Each search gets its share of the cores."),
    "remote": Ban(_NETWORK),
    "entrez_query": Ban(_NETWORK, _SUBSET),
    "import_search_strategy": Ban(_PATH, "Give the options of the strategy one by one."),
    "export_search_strategy": Ban(_PATH, "The options of a search are kept with it."),
    "in_pssm": Ban(_PATH, _DROP_IN),
    "gilist": Ban(_PATH, _SUBSET),
    "seqidlist": Ban(_PATH, _SUBSET),
    "negative_gilist": Ban(_PATH, _SUBSET),
    "negative_seqidlist": Ban(_PATH, _SUBSET),
    "ipglist": Ban(_PATH, _SUBSET),
    "negative_ipglist": Ban(_PATH, _SUBSET),
    "taxidlist": Ban(_PATH, "Write the ids out: -taxids 9606,10090."),
    "negative_taxidlist": Ban(_PATH, "Write the ids out: -negative_taxids 9606,10090."),
    "filtering_db": Ban(_PATH, "Mask the query with lower case and use -lcase_masking."),
    "window_masker_db": Ban(_PATH, "Mask the query with lower case and use -lcase_masking."),
    "window_masker_taxid": Ban(
        "it reads mask files of the machine that searches",
        "Mask the query with lower case and use -lcase_masking.",
    ),
    "use_index": Ban("it reads index files beside the database"),
    "index_name": Ban(_PATH),
    "db_soft_mask": Ban("it depends on masks that a database may lack", _DROP_IN),
    "db_hard_mask": Ban("it depends on masks that a database may lack", _DROP_IN),
    "dbsize": Ban(_STATISTICS),
    "searchsp": Ban(_STATISTICS),
    "sum_stats": Ban(_STATISTICS),
    "html": Ban("the result would not be what its format says", "Open the result on the page."),
    "parse_deflines": Ban("a title it cannot parse makes the search fail", _DROP_IN),
    "h": Ban("it prints help instead of searching", "Ask 'PROGRAM -help' of BLAST+ itself."),
    "help": Ban("it prints help instead of searching", "Ask 'PROGRAM -help' of BLAST+ itself."),
    "version": Ban("it prints the version instead of searching", "Use 'blastyard version'."),
}
