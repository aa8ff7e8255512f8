"""Names of the DAGs, runs, task instances and pools that have changed, for open web pages.

The web page gets only names, and reads the details itself. While no page is open, nothing is collected: a commit then costs
one check of `wanted`. Names are collected for `FLUSH_AFTER` and sent together, so that a thousand commits make ten messages.

    dag:<dag id>                                 the DAG was parsed, paused, deleted …
    run:<dag id>/<run id>                        a run, or a task instance in it
    task:<dag id>/<run id>/<task id>/<map index> a task instance
    tasks:<dag id>/<run id>                      many task instances of a run, or those that somebody has marked or cleared
    pool:<name>                                  a pool, or what it is used for
    pools                                        pools were edited
    triage                                       the state of a run, of a failed task instance, or of one that asks a person
    resync                                       more has changed than is listed: read everything again

Ids are percent-encoded, so that `/` separates them.
"""

from __future__ import annotations

from urllib.parse import quote

from tradewind.model.moments import SECOND
from tradewind.model.states import FAILURES, OCCUPYING, TaskState
from tradewind.scheduler.runs.active_run import ActiveRun

FLUSH_AFTER = SECOND // 10
NAMES_MAX = 1000
"""Maximum number of names in a message. If there are more, the message is `resync`."""
TASKS_MAX = 200
"""Maximum number of task instances of one run. If more have changed, they are not named one by one."""

_OCCUPYING = frozenset(state.code for state in OCCUPYING)
_FAILURES = frozenset(state.code for state in FAILURES)
_ASKS = TaskState.AWAITING_INPUT.code

TRIAGE, RESYNC, POOLS = "triage", "resync", "pools"


class Changes:
    """Collects names. `wanted`: whether any page is open."""

    __slots__ = ("_names", "wanted")

    def __init__(self) -> None:
        self.wanted = False
        self._names: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._names)

    def add(self, name: str) -> None:
        """Add a name, if any page is open."""
        if not self.wanted or RESYNC in self._names:
            return
        if len(self._names) >= NAMES_MAX:
            self._names = {RESYNC: None}
        else:
            self._names[name] = None

    def dag(self, dag_id: str) -> None:
        self.add(f"dag:{_encoded(dag_id)}")

    def run(self, dag_id: str, run_id: str) -> None:
        """Add a run that was created or deleted, or has changed its state or note."""
        self.add(f"run:{_encoded(dag_id)}/{_encoded(run_id)}")
        self.dag(dag_id)
        self.add(TRIAGE)

    def edited(self, dag_id: str, run_id: str) -> None:
        """Add a run whose task instances somebody has marked or cleared, or whose note somebody has changed."""
        self.run(dag_id, run_id)
        self.add(f"tasks:{_encoded(dag_id)}/{_encoded(run_id)}")

    def committed(self, active_run: ActiveRun) -> None:
        """Add what a committed batch of a run has changed. Call it before the run begins the next batch."""
        row, machine = active_run.row, active_run.machine
        place = f"{_encoded(row.dag_id)}/{_encoded(row.run_id)}"
        self.add(f"run:{place}")
        if active_run.state is not row.state:
            self.dag(row.dag_id)
            self.add(TRIAGE)
        journal = active_run.journal
        listed = len({entry.slot for entry in journal[: TASKS_MAX + 1]}) <= TASKS_MAX and len(journal) <= 4 * TASKS_MAX
        if not listed:
            self.add(f"tasks:{place}")
        for entry in journal:
            if entry.after in _FAILURES or _ASKS in (entry.before, entry.after):
                self.add(TRIAGE)
            if (entry.before in _OCCUPYING) != (entry.after in _OCCUPYING):
                number = machine.instances.task(entry.slot)
                self.add(f"pool:{_encoded(active_run.pools.get(entry.slot, active_run.topology.tasks[number].pool))}")
            if listed:
                task_id, index = active_run.where(entry.slot)
                self.add(f"task:{place}/{_encoded(task_id)}/{index}")

    def take(self) -> list[str]:
        """Return all names since the last call."""
        names, self._names = list(self._names), {}
        return names


def _encoded(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")
