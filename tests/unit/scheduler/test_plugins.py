"""What the parser reports about plugins: stored for people, failures among the import errors."""

from __future__ import annotations

from tests.unit.scheduler.bench import NOW, Bench
from tradewind.store.views import read_plugins

TROUBLE = {"file": "bad.py", "message": "ValueError: no", "stack_trace": "…", "line": 3}


def test_plugins_are_stored_and_their_errors_updated(bench: Bench) -> None:
    assert read_plugins(bench.store.plugins()) == []
    one = {"name": "ours", "source": "$PLUGINS_FOLDER/ours.py", "macros": ["m"]}
    bench.command("register_plugins", plugins=[one], problems=[TROUBLE, {**TROUBLE, "file": "worse.py"}], at=NOW)
    assert [plugin.name for plugin in read_plugins(bench.store.plugins())] == ["ours"]
    assert sorted(bench.store.known_files("plugins")) == ["bad.py", "worse.py"]
    bench.command("register_plugins", plugins=[], problems=[TROUBLE], at=NOW)
    assert bench.store.plugins() == "[]"
    assert sorted(bench.store.known_files("plugins")) == ["bad.py"]
    bench.command("register_plugins", plugins=[], problems=[], at=NOW)
    assert bench.store.known_files("plugins") == {}
