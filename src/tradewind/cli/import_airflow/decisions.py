"""Decides how states, run types, unfinished runs and pause states are imported. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tradewind.model.accounts import GrantAction
from tradewind.model.moments import SECOND
from tradewind.model.states import RunState, RunType, TaskState

HEARTBEAT_SECONDS = 60
"""A scheduler of Airflow whose last heartbeat is older than this does not run. It sends a heartbeat every five seconds."""

BUSY_STATES = frozenset(
    {"running", "queued", "deferred", "restarting", "sensing", "awaiting_input", "shutdown", "up_for_reschedule"}
)
"""States of a task instance that Airflow executes now, or continues by itself."""

_RUN_TYPES = {
    "backfill_job": RunType.BACKFILL,
    "dataset_triggered": RunType.ASSET_TRIGGERED,
    **{kind.value: kind for kind in RunType},
}
_BY_PREFIX = {"scheduled": RunType.SCHEDULED, "backfill": RunType.BACKFILL}


def run_type(stored: str | None, run_id: str) -> RunType:
    """The type of a run. Airflow 1.10 does not store the type, but its run ids begin with it."""
    if stored is not None:
        return _RUN_TYPES.get(stored, RunType.MANUAL)
    for prefix, kind in _BY_PREFIX.items():
        if run_id.startswith((f"{prefix}__", f"{prefix}_")):
            return kind
    return RunType.MANUAL


def task_state(stored: str | None) -> TaskState:
    """The state of a task instance in Tradewind. A finished state stays; every other task instance is examined again."""
    if stored in ("success", "failed", "skipped", "upstream_failed", "removed"):
        return TaskState(stored)
    return TaskState.NONE


class RunDecision(NamedTuple):
    """Whether a run is imported. `state` None: the run is not imported now; `reason` says why."""

    state: RunState | None
    reason: str = ""


def decide_run(
    state: str | None, task_states: Iterable[tuple[str, str | None]], *, is_paused: bool, scheduler_lives: bool
) -> RunDecision:
    """Decide whether Airflow has finished a run, so that the run can be imported.

    Args:
        state: of the run.
        task_states: (task id, state) of its task instances.
        is_paused: Airflow has paused the DAG.
        scheduler_lives: a scheduler of Airflow runs.
    """
    if state in ("success", "failed"):
        return RunDecision(RunState(state))
    busy = sorted({f"{task_id} is {now}" for task_id, now in task_states if now in BUSY_STATES})
    if busy:
        more = f" and {len(busy) - 1} more" if len(busy) > 1 else ""
        return RunDecision(None, f"Airflow executes it: {busy[0]}{more}; import again when it has ended")
    if scheduler_lives and not is_paused:
        return RunDecision(None, "Airflow may continue it: pause the DAG there, or stop its scheduler, and import again")
    return RunDecision(RunState.QUEUED)


class PauseDecision(NamedTuple):
    """Whether a DAG is paused in Tradewind after the import. `paused` None: unchanged."""

    paused: bool | None
    reason: str = ""


def decide_pause(
    *, paused_there: bool, scheduler_lives: bool, activate: bool, is_named: bool, paused_here: bool
) -> PauseDecision:
    """Decide whether a DAG is paused in Tradewind. A DAG that Airflow may run is paused, so that no run is executed twice.

    Args:
        activate: the user wants DAGs to run in Tradewind from now on.
        is_named: the user has named this DAG.
    """
    if scheduler_lives and not paused_there:
        if activate:
            return PauseDecision(None if paused_here else True, "Airflow runs it: pause it there, or stop Airflow's scheduler")
        return PauseDecision(None if paused_here else True, "" if paused_here else "paused here, because Airflow runs it")
    if activate and (is_named or not paused_there):
        return PauseDecision(False if paused_here else None)
    if paused_there and not paused_here and not activate:
        return PauseDecision(None, "runs here and is paused in Airflow")
    return PauseDecision(None)


def lives(heartbeat: int | None, now: int) -> bool:
    """Whether a scheduler with this last heartbeat runs. Moments are microseconds."""
    return heartbeat is not None and now - heartbeat < HEARTBEAT_SECONDS * SECOND


ROLES = {"admin": "admin", "op": "op", "user": "user", "viewer": "viewer", "public": "public"}


def role_of(names: Iterable[str]) -> str | None:
    """The role of a user who has these roles in Airflow: the strongest of them. None: Tradewind has none of these roles."""
    known = {ROLES[name.lower()] for name in names if name.lower() in ROLES}
    return next((role for role in ROLES.values() if role in known), None)


Grants = frozenset[tuple[str, GrantAction]]
"""What a custom role may do: (DAG id or pattern, action)."""

_ALL_DAGS = frozenset({"DAGs", "all_dags"})
_STARTS_RUNS = ("can_create", "DAG Runs")
_WITHOUT_MEANING = frozenset({"can_read", "menu_access"})
"""Permissions of these kinds only open pages of Airflow, except those for DAGs."""
_OWN = frozenset({"My Password", "My Profile"})


class RoleDecision(NamedTuple):
    """The grants of a custom role in Tradewind, and its permissions without a counterpart."""

    grants: Grants
    left_out: list[str]
    """`can_edit on Pools`."""


def decide_role(permissions: Iterable[tuple[str, str]]) -> RoleDecision:
    """The grants of a role that has these permissions in Airflow; in Tradewind the role can change no more than in Airflow.

    `read` shows all of a DAG. In Tradewind, `edit` includes starting runs. In Airflow 2 and 3 that is a separate permission;
    without it, `can_edit` on a DAG becomes `read`.

    Args:
        permissions: (action, object): Airflow 2 has `can_edit` on `DAG:etl`, Airflow 1.10 `can_dag_edit` on `etl`.
    """
    given = set(permissions)
    grants: set[tuple[str, GrantAction]] = set()
    left_out = []
    for action, name in sorted(given):
        if action in ("can_dag_read", "can_dag_edit"):
            pattern = "*" if name in _ALL_DAGS else name
            grants.add((pattern, "edit" if action == "can_dag_edit" else "read"))
        elif name in _ALL_DAGS or name.startswith("DAG:"):
            dag_id = "*" if name in _ALL_DAGS else name.removeprefix("DAG:")
            may_run = _STARTS_RUNS in given or ("can_create", f"DAG Run:{dag_id}") in given
            if action == "can_edit" and may_run:
                grants.add((dag_id, "edit"))
            elif action == "can_delete":
                grants.add((dag_id, "delete"))
            elif action in ("can_read", "can_edit"):
                grants.add((dag_id, "read"))
                if action == "can_edit":
                    left_out.append(f"can_edit on {name}, because the role may not create DAG runs")
        elif action not in _WITHOUT_MEANING and name not in _OWN and not name.startswith(("DAG Run", "Task Instance")):
            left_out.append(f"{action} on {name}")
    stronger = {dag_id for dag_id, action in grants if action != "read"}
    return RoleDecision(frozenset(one for one in grants if one[1] != "read" or one[0] not in stronger), left_out)
