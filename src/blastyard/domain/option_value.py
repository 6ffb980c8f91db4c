"""Whether the text given for one option is a value it can have.

BLAST+ itself takes ``0x10`` and ``1e``, reads ``-comp_based_stats 4`` as the default and falls
back to its defaults for DUST parameters out of range; here a value says what it means.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Final

from blastyard.domain.errors import CallerMistake
from blastyard.domain.option_table import Kind, OptionRule

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_REAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TAXIDS: Final = re.compile(r"[0-9]{1,10}(?:,[0-9]{1,10})*")
_RANGE: Final = re.compile(r"([0-9]{1,10})-([0-9]{1,10})")
_BOOLEANS: Final = frozenset({"true", "false", "t", "f", "yes", "no", "y", "n", "1", "0"})
_INT_MAX: Final = 2**31 - 1
# One argument of a command line can hold no more.
_LONGEST: Final = 100_000


def mistake(name: str, value: str, reason: str, next_step: str) -> CallerMistake:
    """The error for an option with a value it cannot have."""
    shown = value if len(value) <= 60 else value[:57] + "..."
    given = f"-{name} {shown!r}" if shown else f"-{name}"
    return CallerMistake("option_value", f"{given}: {reason}", next_step)


def check_value(name: str, rule: OptionRule, value: str) -> None:
    """Raise :class:`CallerMistake` (``option_value``) unless ``rule`` allows ``value``."""
    if len(value) > _LONGEST:
        raise mistake(name, value, "the value is too long.", "Shorten it.")
    _CHECKS[rule.kind](name, rule, value)


def parse_range(value: str) -> tuple[int, int] | None:
    """``start-stop`` as two numbers; None when it is no such text."""
    match = _RANGE.fullmatch(value)
    return (int(match[1]), int(match[2])) if match else None


def parse_taxids(value: str) -> tuple[int, ...]:
    """The taxonomy ids of a checked value."""
    return tuple(int(taxid) for taxid in value.split(",") if taxid)


def _check_integer(name: str, rule: OptionRule, value: str) -> None:
    if not _INTEGER.fullmatch(value):
        raise mistake(name, value, "this is not a whole number.", _must_be(name, rule))
    _check_bounds(name, rule, value, int(value))


def _check_real(name: str, rule: OptionRule, value: str) -> None:
    if not _REAL.fullmatch(value):
        reason = "this is not a number."
        if re.fullmatch(r"[+-]?[0-9]+,[0-9]+", value):
            reason = f"a decimal point is needed: {value.replace(',', '.')}."
        elif value.strip("+-").lower() in {"nan", "inf", "infinity"}:
            reason = "BLAST+ knows no such number."
        raise mistake(name, value, reason, _must_be(name, rule))
    number = float(value)
    if math.isinf(number):
        raise mistake(name, value, "the number is too large.", _must_be(name, rule))
    if number == 0 and re.search(r"[1-9]", re.split("[eE]", value)[0]):
        step = "Use 1e-300 or more; BLAST+ prints E-values below 1e-180 as 0.0."
        raise mistake(name, value, "the number is so small that BLAST+ takes it for 0.", step)
    _check_bounds(name, rule, value, number)


def _check_bounds(name: str, rule: OptionRule, value: str, number: float) -> None:
    low, high = rule.low, rule.high
    fits = (low is None or number > low or (number == low and not rule.open_low)) and (
        high is None or number < high or (number == high and not rule.open_high)
    )
    if not fits:
        raise mistake(name, value, "the number is out of range.", _must_be(name, rule))


def _must_be(name: str, rule: OptionRule) -> str:
    return f"-{name} takes {rule.range_text()}."


def _check_boolean(name: str, rule: OptionRule, value: str) -> None:
    if value.lower() not in _BOOLEANS:
        raise mistake(name, value, "this is neither yes nor no.", _must_be(name, rule))


def _check_choice(name: str, rule: OptionRule, value: str) -> None:
    if value not in rule.choices and not (rule.any_case and value.upper() in rule.choices):
        raise mistake(name, value, "there is no such choice.", _must_be(name, rule))


def _check_dust(name: str, rule: OptionRule, value: str) -> None:
    if value in {"yes", "no"}:
        return
    words = value.split()
    numbers = [int(word) for word in words if _INTEGER.fullmatch(word)]
    bounds = ((2, 64), (8, 64), (1, 32))
    if len(words) != 3 or len(numbers) != 3:
        raise mistake(name, value, "this is no DUST setting.", _must_be(name, rule))
    if not all(low <= number <= high for number, (low, high) in zip(numbers, bounds, strict=True)):
        raise mistake(name, value, "BLAST+ would use its defaults instead.", _must_be(name, rule))


def _check_seg(name: str, rule: OptionRule, value: str) -> None:
    if value in {"yes", "no"}:
        return
    words = value.split()
    if len(words) != 3 or not _INTEGER.fullmatch(words[0]) or int(words[0]) < 1:
        raise mistake(name, value, "this is no SEG setting.", _must_be(name, rule))
    if not all(_REAL.fullmatch(word) for word in words[1:]):
        raise mistake(name, value, "this is no SEG setting.", _must_be(name, rule))
    if not 0 <= float(words[1]) <= float(words[2]) < math.inf:
        raise mistake(name, value, "this is no SEG setting.", _must_be(name, rule))


def _check_range(name: str, rule: OptionRule, value: str) -> None:
    found = parse_range(value)
    if found is None:
        raise mistake(name, value, "this is not a range.", _must_be(name, rule))
    if not 1 <= found[0] < found[1] <= _INT_MAX:
        raise mistake(name, value, "the range is empty or begins before 1.", _must_be(name, rule))


def _check_taxids(name: str, rule: OptionRule, value: str) -> None:
    if not _TAXIDS.fullmatch(value):
        raise mistake(name, value, "this is not a list of taxonomy ids.", _must_be(name, rule))
    if not all(1 <= taxid <= _INT_MAX for taxid in parse_taxids(value)):
        raise mistake(name, value, "there is no such taxonomy id.", _must_be(name, rule))


def _check_flag(name: str, _rule: OptionRule, value: str) -> None:
    raise mistake(name, value, "the option takes no value.", f"Write -{name} alone, or leave it.")


_CHECKS: Final[Mapping[Kind, Callable[[str, OptionRule, str], None]]] = {
    Kind.FLAG: _check_flag,
    Kind.INTEGER: _check_integer,
    Kind.REAL: _check_real,
    Kind.BOOLEAN: _check_boolean,
    Kind.CHOICE: _check_choice,
    Kind.DUST: _check_dust,
    Kind.SEG: _check_seg,
    Kind.RANGE: _check_range,
    Kind.TAXIDS: _check_taxids,
}
