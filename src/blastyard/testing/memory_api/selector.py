"""Which objects a list or a watch is about: label and field selectors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from blastyard.testing.memory_api.kind import Json, Kind
from blastyard.testing.memory_api.refusal import Refusal, bad_request

_WORD: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE: Final = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_LABEL: Final = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<missing>{_WORD})"
    rf"|(?P<key>{_WORD})"
    rf"(?:\s*(?P<operator>==|=|!=)\s*(?P<value>{_VALUE})"
    r"|\s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?)\s*"
)
_COMMA: Final = re.compile(r",(?![^(]*\))")
_FIELD: Final = re.compile(r"([A-Za-z.]+)(==|!=|=)(.*)")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. ``values`` is empty for mere presence or absence."""

    key: str
    values: frozenset[str]
    wanted: bool
    """Whether it asks for these values (for presence), or for anything else."""
    mere: bool = False

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels meet it; other values than these include none at all."""
        if self.mere:
            return (self.key in labels) == self.wanted
        if self.key not in labels:
            return not self.wanted
        return (labels[self.key] in self.values) == self.wanted


@dataclass(frozen=True, slots=True)
class Selector:
    """A conjunction of conditions; without any it selects everything."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[tuple[str, str, bool], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.labels or self.fields)

    def holds(self, document: Json) -> bool:
        """Whether an object is selected."""
        if self.labels:
            labels = document["metadata"].get("labels", {})
            if not all(one.holds(labels) for one in self.labels):
                return False
        return all((_field(document, key) == value) == wanted for key, value, wanted in self.fields)


def parse(kind: Kind, query: Mapping[str, str]) -> Selector:
    """The selector of a request. Raises ``Refusal`` (400) if it cannot be understood."""
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    return Selector(
        tuple(_requirement(text) for text in _COMMA.split(labels)) if labels.strip() else (),
        tuple(_condition(kind, text) for text in fields.split(",") if text),
    )


def _requirement(text: str) -> Requirement:
    found = _LABEL.fullmatch(text)
    if found is None:
        raise bad_request(f"unable to parse requirement: {text!r}")
    if found["absent"]:
        return Requirement(found["missing"], frozenset(), wanted=False, mere=True)
    if found["operator"]:
        wanted = found["operator"] != "!="
        return Requirement(found["key"], frozenset((found["value"],)), wanted)
    if found["set"]:
        values = frozenset(value.strip() for value in found["values"].split(","))
        if any(re.fullmatch(_VALUE, value) is None for value in values):
            raise bad_request(f"values: Invalid value: {text!r}")
        return Requirement(found["key"], values, found["set"] == "in")
    return Requirement(found["key"], frozenset(), wanted=True, mere=True)


def _condition(kind: Kind, text: str) -> tuple[str, str, bool]:
    found = _FIELD.fullmatch(text)
    if found is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{text}'")
    key, operator, value = found.groups()
    if key not in ("metadata.name", "metadata.namespace", *kind.fields):
        raise _unsupported(kind, key)
    return key, value, operator != "!="


def _unsupported(kind: Kind, key: str) -> Refusal:
    if not kind.fields:
        return bad_request(
            f'"{key}" is not a known field selector: only "metadata.name", "metadata.namespace"'
        )
    return bad_request(f'field label "{key}" not supported for {kind.name}')


def _field(document: Json, key: str) -> str:
    if key == "status.successful":
        return str(document.get("status", {}).get("succeeded", 0))
    return str(document["metadata"][key.partition(".")[2]])
