"""The summary of many reports on one screen, and the rows of the table and of JSON."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from tradewind.doctor.file_report import CANNOT, FileReport, Note
from tradewind.model.counts import counted
from tradewind.sdk.generation import CURRENT

LISTED = 8
"""Maximum number of lines of each list. Further entries are only counted."""
WIDTH = 160
FEW = 3
"""Up to so many errors are shown in full, because the end of an error says what to install or to change."""


def summary(
    reports: Sequence[FileReport], installed: Collection[str], missing_connections: Collection[str], path: str
) -> Iterator[str]:
    """The lines of the summary.

    Args:
        installed: short names of the installed provider packages.
        missing_connections: ids of connections that are used and not defined.
        path: as the user gave it, for the commands that the summary names.
    """
    failed = [one for one in reports if one.verdict == CANNOT]
    noted = sum(bool(one.notes) for one in reports) - len(failed)
    clean = len(reports) - len(failed) - noted
    yield f"{counted(len(reports), 'DAG file')}: {clean} load, {noted} load with notes, {len(failed)} cannot load"
    yield f"{counted(sum(len(one.dags) for one in reports), 'DAG')}. " + _generations(reports)
    yield from _providers(reports, installed)
    yield from _names("Connections", (one.connections for one in reports), missing_connections)
    yield from _names("Variables", (one.variables for one in reports), ())
    if failed:
        yield ""
        yield "Cannot load:"
        errors = [_place(one.file, error) for one in failed if (error := one.error) is not None]
        yield from _wrapped(errors) if len(errors) <= FEW else _listed(errors)
    kinds = Counter((note.kind, _general(note)) for one in reports for note in one.notes if note.kind != "error")
    if kinds:
        yield ""
        yield "Notes (number, kind, text):"
        yield from _listed([f"{number:5,}  {kind}: {text}" for (kind, text), number in kinds.most_common()])
    fixable = [one for one in reports if one.fixable]
    yield ""
    if fixable:
        yield (
            f"tradewind doctor {path} --fix changes {counted(sum(one.fixable for one in fixable), 'place')} in "
            f"{counted(len(fixable), 'file')}, after a question. The old names also work without the change."
        )
    yield f"tradewind doctor {path} -o table lists every file, -o json everything."


def _generations(reports: Iterable[FileReport]) -> str:
    found = Counter(one.generation for one in reports)
    parts = [f"{counted(found[number], 'file')} for Airflow {number}" for number in sorted(found)]
    older = any(number < CURRENT for number in found)
    return ", ".join(parts) + (" (older files keep their meaning of schedules)" if older else "")


def _providers(reports: Sequence[FileReport], installed: Collection[str]) -> Iterator[str]:
    needed = Counter(name for one in reports for name in one.providers)
    if not needed:
        return
    missing = [name for name, _ in needed.most_common() if name not in installed]
    yield "Provider packages: " + ", ".join(
        f"{name} ({counted(number, 'file')}{', missing' if name in missing else ''})" for name, number in needed.most_common()
    )
    if missing:
        yield f"  Install them: tradewind providers install {' '.join(missing)}"


def _names(title: str, used: Iterable[Collection[str]], missing: Collection[str]) -> Iterator[str]:
    found = Counter(name for names in used for name in names)
    if not found:
        return
    names = [f"{name}{' (not defined)' if name in missing else ''}" for name, _ in found.most_common()]
    more = f", and {len(names) - 2 * LISTED} more" if len(names) > 2 * LISTED else ""
    yield f"{title}: {', '.join(names[: 2 * LISTED])}{more}"


def _listed(lines: Sequence[str]) -> Iterator[str]:
    for line in lines[:LISTED]:
        text = " ".join(line.split()) if not line.startswith(" ") else line
        yield f"  {text[:WIDTH]}{'…' if len(text) > WIDTH else ''}"
    if len(lines) > LISTED:
        yield f"  … and {len(lines) - LISTED} more"


def _wrapped(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield from textwrap.wrap(" ".join(line.split()), WIDTH, initial_indent="  ", subsequent_indent="    ")


def _place(file: str, note: Note) -> str:
    return f"{file}{'' if note.line is None else f':{note.line}'}: {note.text}"


_DAG = re.compile(r"^[\w.-]+: ")


def _general(note: Note) -> str:
    """The text of a note without the id of its DAG, so that equal notes are counted together."""
    text = _DAG.sub("", note.text) if note.kind in ("meaning", "warning") else note.text
    if note.kind == "meaning":
        return text.partition(": ")[2] or text
    return text


def table_rows(reports: Iterable[FileReport]) -> list[dict[str, Any]]:
    """One row for each file, the most important note first."""
    return [
        {
            "file": one.file,
            "verdict": one.verdict,
            "airflow": one.generation,
            "dags": len(one.dags),
            "providers": ", ".join(one.providers),
            "connections": ", ".join(one.connections),
            "note": _first(one),
        }
        for one in reports
    ]


def _first(report: FileReport) -> str:
    first = report.error or next(iter(report.notes), None)
    if first is None:
        return ""
    more = f" (and {len(report.notes) - 1} more)" if len(report.notes) > 1 else ""
    return ("" if first.line is None else f"line {first.line}: ") + " ".join(first.text.split()) + more


def json_rows(reports: Iterable[FileReport]) -> list[dict[str, Any]]:
    """Everything about each file."""
    return [{**one._asdict(), "notes": [note._asdict() for note in one.notes]} for one in reports]
