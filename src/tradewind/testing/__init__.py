"""The kit for testing DAGs, and for testing Tradewind itself.

    from tradewind.testing import assert_states, run_dag

    def test_my_dag():
        run = run_dag(my_dag, logical_date=datetime(2026, 1, 31))
        assert_states(run, fetch="success", load="skipped")
        assert run.xcom("count_rows") == 42

Each name is imported when it is first used, so the pytest plugin costs nothing if no test uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tradewind.lazy_names import import_name

if TYPE_CHECKING:
    from tradewind.model.errors import ScheduleError as ScheduleError
    from tradewind.platform.clock import ManualClock
    from tradewind.simulation.simulate import Simulated as Simulated
    from tradewind.simulation.simulate import SimulationFailed as SimulationFailed
    from tradewind.simulation.simulate import simulate as simulate
    from tradewind.store.memory import MemoryStore as MemoryStore
    from tradewind.testing.assertions import assert_rendered as assert_rendered
    from tradewind.testing.assertions import assert_run as assert_run
    from tradewind.testing.assertions import assert_states as assert_states
    from tradewind.testing.assertions import assert_xcom as assert_xcom
    from tradewind.testing.assertions import log_of as log_of
    from tradewind.testing.assertions import rendered as rendered
    from tradewind.testing.assertions import state_of as state_of
    from tradewind.testing.assertions import xcom_of as xcom_of
    from tradewind.testing.calendars import PlannedRun as PlannedRun
    from tradewind.testing.calendars import manual_interval as manual_interval
    from tradewind.testing.calendars import upcoming_runs as upcoming_runs
    from tradewind.testing.dag_folder import DagFolder as DagFolder
    from tradewind.testing.frozen_clock import FrozenClock as FrozenClock
    from tradewind.testing.frozen_clock import frozen as frozen
    from tradewind.testing.results import TestedAttempt as TestedAttempt
    from tradewind.testing.results import TestedRun as TestedRun
    from tradewind.testing.results import TestedTask as TestedTask
    from tradewind.testing.run import run_dag as run_dag
    from tradewind.testing.run import run_task as run_task
    from tradewind.testing.secrets import fake_connections as fake_connections
    from tradewind.testing.secrets import fake_variables as fake_variables
    from tradewind.testing.simulation import Moment as Moment
    from tradewind.testing.simulation import Simulation as Simulation
    from tradewind.testing.simulation import StateChange as StateChange

    FakeClock = ManualClock

_NAMES = {
    "ScheduleError": "model.errors",
    "FakeClock": "platform.clock:ManualClock",
    "MemoryStore": "store.memory",
    "assert_rendered": "testing.assertions",
    "assert_run": "testing.assertions",
    "assert_states": "testing.assertions",
    "assert_xcom": "testing.assertions",
    "log_of": "testing.assertions",
    "rendered": "testing.assertions",
    "state_of": "testing.assertions",
    "xcom_of": "testing.assertions",
    "PlannedRun": "testing.calendars",
    "manual_interval": "testing.calendars",
    "upcoming_runs": "testing.calendars",
    "DagFolder": "testing.dag_folder",
    "FrozenClock": "testing.frozen_clock",
    "frozen": "testing.frozen_clock",
    "TestedAttempt": "testing.results",
    "TestedRun": "testing.results",
    "TestedTask": "testing.results",
    "run_dag": "testing.run",
    "run_task": "testing.run",
    "fake_connections": "testing.secrets",
    "fake_variables": "testing.secrets",
    "Simulated": "simulation.simulate",
    "SimulationFailed": "simulation.simulate",
    "simulate": "simulation.simulate",
    "StateChange": "testing.simulation",
    "Moment": "testing.simulation",
    "Simulation": "testing.simulation",
}

__all__ = [*_NAMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Lazy import: import the module of a name when the name is first used."""
    return import_name(__name__, _NAMES, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
