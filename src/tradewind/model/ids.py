"""Names that people give to DAGs, tasks and runs."""

from __future__ import annotations

import re

from tradewind.model.errors import WrongName
from tradewind.model.moments import iso
from tradewind.model.states import RunType

DAG_FILE_MODULE = "tradewind_dag_file_"
"""Prefix of the module name under which a DAG file is imported."""
UNEXPANDED = -1
"""Map index of the instance of a task that is not mapped, or not expanded yet."""
RUN_ID_MAX = 250
_RUN_ID = re.compile(r"[A-Za-z0-9_.~:+\-=@ ]+")


def check_run_id(run_id: str) -> None:
    """Check that a text can be a run id: letters, digits and `_.~:+-=@`, at most 250 characters.

    A run id becomes a part of URLs. `.` and `..` are refused, because HTTP clients and servers remove them from a path.

    Raises:
        WrongName: the text cannot be a run id.
    """
    if len(run_id) > RUN_ID_MAX:
        raise WrongName(f"the run id has {len(run_id)} characters; {RUN_ID_MAX} are allowed")
    if not _RUN_ID.fullmatch(run_id) or ".." in run_id:
        raise WrongName(f"the run id {run_id!r} may only have letters, digits and _ . ~ : + - = @, and no '..'")
    if run_id.strip() in ("", "."):
        raise WrongName(f"the run id {run_id!r} would be lost as a part of a URL; use at least one letter or digit")


def named_run_id(kind: RunType, moment: int) -> str:
    """Airflow's run id of a run of this kind. `moment`: microseconds."""
    return f"{kind.value}__{(iso(moment) or '').replace('Z', '+00:00')}"


def check_not_reserved(run_id: str) -> None:
    """Check that a manual run may have this id: the scheduler gives the ids of all other kinds of runs.

    Raises:
        WrongName: the id begins like one of another kind.
    """
    for kind in RunType:
        if kind is not RunType.MANUAL and run_id.startswith(f"{kind.value}__"):
            raise WrongName(f"the id of a manual run cannot begin with '{kind.value}__': these ids are for {kind.value} runs")


ANY_KEY = ""
"""Used in place of the key of an XCom: the returned value of a task if there is one, otherwise any other value that it pushed."""
