"""Reads the golden outcomes beside this file, and compares outcomes with them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Json = Mapping[str, Any]

DATA = Path(__file__).parent / "open"
OWN = Path(__file__).parent / "own"


def specifications(family: str, folder: Path = DATA) -> Iterator[dict[str, Any]]:
    """All specifications of a family with an expected outcome."""
    with gzip.open(folder / f"{family}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            spec = json.loads(line)
            if "expect" in spec:
                yield spec


def agrees(spec: Json, answer: Json) -> bool:
    """True if the outcome is Airflow's, or an outcome that Airflow also reaches if simultaneous events are processed in another
    order.
    """
    accepted = [spec["expect"]["outcome"], *spec["expect"].get("alternatives", ())]
    return _sorted(answer["outcome"]) in [_sorted(outcome) for outcome in accepted]


def _sorted(outcome: Json) -> dict[str, Any]:
    """Sort lists, except `steps` (ordered by time) and queues (ordered by priority)."""
    plain: dict[str, Any] = json.loads(json.dumps(outcome))
    for part in ("tis", "runs"):
        if part in plain:
            plain[part] = sorted(plain[part], key=json.dumps)
    for step in plain.get("steps", ()):
        for part in ("started", "finished", "waiting"):
            if part in step:
                step[part] = sorted(step[part], key=json.dumps)
        if "queued" in step:
            step["queued"] = sorted(step["queued"], key=lambda row: (-row[4], json.dumps(row)))
    return plain
