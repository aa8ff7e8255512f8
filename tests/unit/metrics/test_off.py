"""While metrics are off, no module of metrics is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module", ["tradewind.scheduler.server", "tradewind.parser.main", "tradewind.worker.host", "tradewind.worker.task_process"]
)
def test_a_service_loads_no_module_of_metrics(module: str) -> None:
    code = f"import sys, {module}; print([one for one in sys.modules if '.metrics' in one or one == 'sentry_sdk'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout == "[]\n"


def test_user_code_loads_no_module_of_metrics() -> None:
    code = (
        "import sys; from tradewind.airflow.compat.stats import Stats; Stats.incr('n'); Stats.timer('t').start().stop();"
        "print([one for one in sys.modules if 'tradewind.metrics' in one])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout == "[]\n"
