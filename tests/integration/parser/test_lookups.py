"""DAG files that read variables and connections during their import, in real child processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.parser.running_parser import RunningParser
from tradewind.wire.messages import GetVariable, Lookup, RunnerAnswer, Value

ASKING = """
from tradewind import DAG
from tradewind.sdk.variables import BaseHook, Variable
from tradewind.operators.empty import EmptyOperator

MORE
with DAG("d" + Variable.get("suffix"), schedule=None):
    EmptyOperator(task_id="at_" + BaseHook.get_connection("db").host)
"""


class Answers:
    """A fake scheduler with these values, or one that is `away`, or that never answers."""

    def __init__(self) -> None:
        self.variables = {"suffix": "1"}
        self.host = "north"
        self.away = False
        self.silent = False
        self.asked = 0

    def look_up(self, question: Lookup, answered: Callable[[RunnerAnswer | None], None]) -> None:
        self.asked += 1
        if self.silent:
            return
        if self.away:
            answered(None)
        elif isinstance(question, GetVariable):
            answered(Value(0, question.key in self.variables, self.variables.get(question.key), secret="pass" in question.key))
        else:
            answered(Value(0, True, {"conn_type": "x", "host": self.host, "password": "hunter22"}, secret=True))


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def running(tmp_path: Path, answers: Answers) -> Iterator[RunningParser]:
    running = RunningParser(tmp_path)
    running.children.look_up = answers.look_up
    yield running
    running.close()


def test_a_file_that_reads_a_variable_is_read_again_when_the_variable_changes(running: RunningParser, answers: Answers) -> None:
    running.write("a.py", ASKING.replace("MORE", ""))
    running.write("b.py", ASKING.replace("MORE", "").replace('"suffix"', '"none", "0"'))
    running.start()
    assert running.store.problems == {}
    assert running.store.dags() == {"d0", "d1"}
    assert running.registrations_of("a.py")[-1]["is_dynamic"]

    answers.variables["suffix"] = "2"
    count = len(running.read)
    running.service.lookup_changed("variable suffix")
    running.until(lambda: running.store.dags() == {"d0", "d2"})
    assert set(running.read[count:]) == {"a.py"}

    del answers.variables["suffix"]
    running.service.lookup_changed("variable suffix")
    running.until(lambda: "a.py" in running.store.problems)
    assert "Variable suffix does not exist." in running.store.problems["a.py"]["message"]
    assert running.store.problems["a.py"]["line"] == 7
    assert running.store.dags() == {"d0", "d2"}, "its last good version stays"
    answers.variables["suffix"] = "2"
    running.service.lookup_changed("variable suffix")
    running.until(lambda: not running.store.problems)


@pytest.mark.parametrize("how", ["away", "silent"])
def test_an_import_without_an_answer_does_not_count(tmp_path: Path, answers: Answers, how: str) -> None:
    setattr(answers, how, True)
    running = RunningParser(tmp_path, timeout=3_000_000)
    running.children.look_up = answers.look_up
    # even a file that catches the error
    running.write("a.py", ASKING.replace("MORE", "try:\n    Variable.get('x')\nexcept Exception:\n    raise SystemExit(0)"))
    try:
        running.children.start()
        running.service.on_scheduler_connected()
        running.until(lambda: running.store.commands.count("known_files") >= 2)
        assert running.store.registrations == []
        setattr(answers, how, False)
        answers.variables["x"] = ""
        running.until(lambda: running.store.dags() == {"d1"})
        assert running.store.problems == {}
    finally:
        running.close()


def test_a_dag_file_changes_nothing_and_secrets_are_masked(running: RunningParser, answers: Answers) -> None:
    answers.variables["passphrase"] = "sesame-open"
    running.write(
        "a.py", ASKING.replace("MORE", "Variable.set('x', 1)\nraise ValueError(Variable.get('x') + Variable.get('y', '?'))")
    )
    running.write(
        "b.py",
        ASKING.replace(
            "MORE", "print(BaseHook.get_connection('db').password)\nraise ValueError('not ' + Variable.get('passphrase'))"
        ),
    )
    running.start()
    assert running.store.problems["a.py"]["message"] == "ValueError: 1?"
    assert "x" not in answers.variables
    assert running.store.problems["b.py"]["message"] == "ValueError: not ***"
    assert "hunter22" not in running.store.problems["b.py"]["stack_trace"]
    assert "sesame-open" not in str(running.store.registrations)
    assert "end of the output ---\n***" in running.store.problems["b.py"]["stack_trace"]
