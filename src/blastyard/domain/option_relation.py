"""What options mean for each other: combinations BLAST+ refuses, ignores or crashes on.

Measured with BLAST+ 2.12; each rule is proved against the installed program by the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from blastyard.domain.errors import CallerMistake
from blastyard.domain.gap_cost import (
    NUCLEOTIDE_DEFAULTS,
    NUCLEOTIDE_GAPS,
    PROTEIN_DEFAULTS,
    PROTEIN_GAPS,
    Pair,
    is_nucleotide_gap,
    is_nucleotide_score,
    is_protein_gap,
    nucleotide_gaps,
)
from blastyard.domain.option_value import mistake
from blastyard.domain.outfmt import OutputFormat
from blastyard.domain.program import Program

Values = Mapping[str, str | None]

_EXCLUSIVE: Final = (
    ("max_target_seqs", "num_descriptions"),
    ("max_target_seqs", "num_alignments"),
    ("culling_limit", "best_hit_overhang"),
    ("culling_limit", "best_hit_score_edge"),
    ("taxids", "negative_taxids"),
    ("ungapped", "use_sw_tback"),
    ("ungapped", "gapopen"),
    ("ungapped", "gapextend"),
)
_PAIRWISE_ONLY: Final = ("num_descriptions", "num_alignments", "line_length", "sorthits")
_DC_WORDS: Final = (11, 12)


def check_relations(program: Program, values: Values, outfmt: OutputFormat) -> None:
    """Raise :class:`CallerMistake` (``option_value``) for options that do not go together."""
    for one, other in _EXCLUSIVE:
        if one in values and other in values:
            raise mistake(
                other, values[other] or "", f"it does not go with -{one}.", "Give one of the two."
            )
    _check_format(values, outfmt)
    task = values.get("task") or program.default_task
    if program is Program.BLASTN:
        _check_discontiguous(task, values)
        _check_two_hits(task, values)
        _check_nucleotide_scores(task, values)
    else:
        _check_identity(program, task, values)
        _check_composition(program, values)
        _check_protein_gaps(task, values)


def _check_format(values: Values, outfmt: OutputFormat) -> None:
    for name in _PAIRWISE_ONLY:
        if name in values and not outfmt.counts_by_description:
            step = "Leave it out, or choose pairwise."
            if name.startswith("num_"):
                step = "Use -max_target_seqs, which works with every format."
            raise _of(values, name, f"it works with formats 0 to 4, not {outfmt.name}.", step)
    if "sorthsps" in values and outfmt.number != 0:
        step = "Leave it out, or choose pairwise."
        raise _of(values, "sorthsps", f"it works with format 0 only, not {outfmt.name}.", step)


def _of(values: Values, name: str, reason: str, next_step: str) -> CallerMistake:
    return mistake(name, values.get(name) or "", reason, next_step)


def _check_discontiguous(task: str, values: Values) -> None:
    for name, partner in (
        ("template_type", "template_length"),
        ("template_length", "template_type"),
    ):
        if name not in values:
            continue
        if task != "dc-megablast":
            step = "Add -task dc-megablast, or leave it out."
            raise _of(values, name, f"templates belong to dc-megablast, not {task}.", step)
        if partner not in values:
            raise _of(values, name, f"it needs -{partner}.", f"Add -{partner}.")
    word = values.get("word_size")
    if task == "dc-megablast" and word and int(word) not in _DC_WORDS:
        raise _of(values, "word_size", "dc-megablast has words of 11 or 12.", "Use 11 or 12.")


def _check_two_hits(task: str, values: Values) -> None:
    default = "40" if task == "dc-megablast" else "0"
    window = int(values.get("window_size") or default)
    if int(values.get("off_diagonal_range") or "0") and not window:
        reason = "it needs the two-hit method."
        raise _of(values, "off_diagonal_range", reason, "Add -window_size 40.")


def _check_nucleotide_scores(task: str, values: Values) -> None:
    given = [name for name in ("reward", "penalty") if name in values]
    if task == "rmblastn" and len(given) == 1:
        reason = "rmblastn needs -reward and -penalty together."
        raise _of(values, given[0], reason, "Give both or neither.")
    default_score, default_gap = NUCLEOTIDE_DEFAULTS[task]
    score = (
        int(values.get("reward") or default_score[0]),
        int(values.get("penalty") or default_score[1]),
    )
    if not is_nucleotide_score(*score):
        known = ", ".join(f"{reward}/{penalty}" for reward, penalty in NUCLEOTIDE_GAPS)
        reason = f"BLAST+ has no statistics for reward {score[0]} and penalty {score[1]}."
        step = f"Pairs of reward/penalty: {known}, or multiples of one."
        raise _of(values, given[-1] if given else "reward", reason, step)
    gap = _gap(values, default_gap)
    greedy = task == "megablast" and "no_greedy" not in values
    if "ungapped" not in values and not is_nucleotide_gap(score, gap, greedy=greedy):
        about = f"reward {score[0]} and penalty {score[1]}"
        raise _gap_mistake(values, gap, about, nucleotide_gaps(score))


def _gap(values: Values, default: Pair) -> Pair:
    return (
        int(values.get("gapopen") or default[0]),
        int(values.get("gapextend") or default[1]),
    )


def _gap_mistake(values: Values, gap: Pair, about: str, pairs: list[Pair]) -> CallerMistake:
    name = "gapextend" if "gapextend" in values and "gapopen" not in values else "gapopen"
    listed = ", ".join(f"{a}/{b}" for a, b in pairs)
    reason = f"with {about} there are no statistics for gap costs {gap[0]} and {gap[1]}."
    return _of(values, name, reason, f"Give -gapopen and -gapextend as one of: {listed}.")


def _check_identity(program: Program, task: str, values: Values) -> None:
    matrix = (values.get("matrix") or "").upper()
    word = int(values.get("word_size") or program.word_size(task))
    if matrix == "IDENTITY" and word > 5:
        reason = f"IDENTITY goes with words of 5 letters or fewer, not {word}."
        raise _of(values, "matrix", reason, "Add -word_size 5, or choose BLOSUM62.")


def _check_composition(program: Program, values: Values) -> None:
    statistics = values.get("comp_based_stats") or "2"
    if program is Program.TBLASTX or "ungapped" not in values or statistics in {"0", "F", "f"}:
        return
    reason = "an ungapped search cannot use composition-based statistics."
    raise _of(values, "ungapped", reason, "Add -comp_based_stats F.")


def _check_protein_gaps(task: str, values: Values) -> None:
    default = "PAM30" if task == "blastp-short" else "BLOSUM62"
    matrix = (values.get("matrix") or default).upper()
    gap = _gap(values, PROTEIN_DEFAULTS[matrix])
    if not is_protein_gap(matrix, gap):
        raise _gap_mistake(values, gap, matrix, list(PROTEIN_GAPS[matrix]))
