"""The kit for testing DAGs, and for testing Tradewind itself.

    from tradewind.testing import assert_states, run_dag

    def test_my_dag():
        run = run_dag(my_dag, logical_date=datetime(2026, 1, 31))
        assert_states(run, fetch="success", load="skipped")
        assert run.xcom("count_rows") == 42

Each name is imported when it is first used, so the pytest plugin costs nothing if no test uses it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradewind.model.errors import ScheduleError as ScheduleError
    from tradewind.platform.clock import ManualClock as FakeClock  # noqa: F401
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

_NAMES = {
    "ScheduleError": "model.errors:ScheduleError",
    "FakeClock": "platform.clock:ManualClock",
    "MemoryStore": "store.memory:MemoryStore",
    "assert_rendered": "testing.assertions:assert_rendered",
    "assert_run": "testing.assertions:assert_run",
    "assert_states": "testing.assertions:assert_states",
    "assert_xcom": "testing.assertions:assert_xcom",
    "log_of": "testing.assertions:log_of",
    "rendered": "testing.assertions:rendered",
    "state_of": "testing.assertions:state_of",
    "xcom_of": "testing.assertions:xcom_of",
    "PlannedRun": "testing.calendars:PlannedRun",
    "manual_interval": "testing.calendars:manual_interval",
    "upcoming_runs": "testing.calendars:upcoming_runs",
    "DagFolder": "testing.dag_folder:DagFolder",
    "FrozenClock": "testing.frozen_clock:FrozenClock",
    "frozen": "testing.frozen_clock:frozen",
    "TestedAttempt": "testing.results:TestedAttempt",
    "TestedRun": "testing.results:TestedRun",
    "TestedTask": "testing.results:TestedTask",
    "run_dag": "testing.run:run_dag",
    "run_task": "testing.run:run_task",
    "fake_connections": "testing.secrets:fake_connections",
    "fake_variables": "testing.secrets:fake_variables",
    "Simulated": "simulation.simulate:Simulated",
    "SimulationFailed": "simulation.simulate:SimulationFailed",
    "simulate": "simulation.simulate:simulate",
    "StateChange": "testing.simulation:StateChange",
    "Moment": "testing.simulation:Moment",
    "Simulation": "testing.simulation:Simulation",
}

__all__ = [*_NAMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Lazy import: the module of a name is imported when the name is first used."""
    target = _NAMES.get(name)
    if target is None:
        raise AttributeError(f"module 'tradewind.testing' has no attribute {name!r}")
    module, _, attribute = target.partition(":")
    value = getattr(importlib.import_module(f"tradewind.{module}"), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
