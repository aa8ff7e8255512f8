"""The warm-up of the base image leaves nothing behind that grows with its rounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

_SCRIPT = """
import importlib, json, sys
from tradewind.worker import base_image, warm_up
for name in base_image.PRELOADED:
    importlib.import_module(name)
warm_up.warm_up(1)
before = set(sys.modules), len(sys.meta_path)
loaded = []
sys.addaudithook(lambda event, args: loaded.append(args[0]) if event == "import" and args[0] not in sys.modules else None)
warm_up.warm_up(2)
print(json.dumps({
    "modules": sorted(set(sys.modules) ^ before[0]),
    "finders": len(sys.meta_path) - before[1],
    "imported": sorted({name for name in loaded if name.startswith("tradewind.")}),
}))
"""


def test_further_rounds_import_nothing_and_add_no_import_finders() -> None:
    """A module that only a round imports is imported again in each round and in each template."""
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == {"modules": [], "finders": 0, "imported": []}


_WITH_LISTENERS = """
import importlib, os, sys
from pathlib import Path
from tradewind.worker import base_image, warm_up
for name in base_image.PRELOADED:
    importlib.import_module(name)
from tradewind.execution.listener_calls import find_listeners
assert find_listeners() is not None
warm_up.warm_up(2)
print("\\n".join(sys.modules["tell"].calls))
"""
_PLUGIN = """
from airflow.listeners import hookimpl
from airflow.plugins_manager import AirflowPlugin

calls = ["loaded"]

class Tell(AirflowPlugin):
    name = "tell"
    class Listener:
        @hookimpl
        def on_task_instance_running(self, task_instance):
            calls.append(task_instance.dag_id)
    listeners = [Listener()]
"""


def test_listeners_do_not_hear_of_it(tmp_path: Path) -> None:
    """They would report tasks that the user does not have, to a lineage service for example."""
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "tell.py").write_text(_PLUGIN)
    environ = {**os.environ, "TRADEWIND_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", _WITH_LISTENERS], capture_output=True, text=True, check=False, timeout=60, env=environ
    )
    assert done.stdout.split() == ["loaded"], done.stderr
