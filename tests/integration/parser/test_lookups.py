"""DAG files that read variables and connections during their import, in real child processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.parser.rig import Rig
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
def rig(tmp_path: Path, answers: Answers) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    rig.children.look_up = answers.look_up
    yield rig
    rig.close()


def test_a_file_that_reads_a_variable_is_read_again_when_the_variable_changes(rig: Rig, answers: Answers) -> None:
    rig.write("a.py", ASKING.replace("MORE", ""))
    rig.write("b.py", ASKING.replace("MORE", "").replace('"suffix"', '"none", "0"'))
    rig.start()
    assert rig.store.problems == {}
    assert rig.store.dags() == {"d0", "d1"}
    assert rig.registrations_of("a.py")[-1]["is_dynamic"]

    answers.variables["suffix"] = "2"
    count = len(rig.read)
    rig.service.lookup_changed("variable suffix")
    rig.until(lambda: rig.store.dags() == {"d0", "d2"})
    assert set(rig.read[count:]) == {"a.py"}

    del answers.variables["suffix"]
    rig.service.lookup_changed("variable suffix")
    rig.until(lambda: "a.py" in rig.store.problems)
    assert "Variable suffix does not exist." in rig.store.problems["a.py"]["message"]
    assert rig.store.problems["a.py"]["line"] == 7
    assert rig.store.dags() == {"d0", "d2"}, "its last good version stays"
    answers.variables["suffix"] = "2"
    rig.service.lookup_changed("variable suffix")
    rig.until(lambda: not rig.store.problems)


@pytest.mark.parametrize("how", ["away", "silent"])
def test_an_import_without_an_answer_does_not_count(tmp_path: Path, answers: Answers, how: str) -> None:
    setattr(answers, how, True)
    rig = Rig(tmp_path, timeout=3_000_000)
    rig.children.look_up = answers.look_up
    # even a file that catches the error
    rig.write("a.py", ASKING.replace("MORE", "try:\n    Variable.get('x')\nexcept Exception:\n    raise SystemExit(0)"))
    try:
        rig.children.start()
        rig.service.on_scheduler_connected()
        rig.until(lambda: rig.store.commands.count("known_files") >= 2)
        assert rig.store.registrations == []
        setattr(answers, how, False)
        answers.variables["x"] = ""
        rig.until(lambda: rig.store.dags() == {"d1"})
        assert rig.store.problems == {}
    finally:
        rig.close()


def test_a_dag_file_changes_nothing_and_secrets_are_masked(rig: Rig, answers: Answers) -> None:
    answers.variables["passphrase"] = "sesame-open"
    rig.write(
        "a.py", ASKING.replace("MORE", "Variable.set('x', 1)\nraise ValueError(Variable.get('x') + Variable.get('y', '?'))")
    )
    rig.write(
        "b.py",
        ASKING.replace(
            "MORE", "print(BaseHook.get_connection('db').password)\nraise ValueError('not ' + Variable.get('passphrase'))"
        ),
    )
    rig.start()
    assert rig.store.problems["a.py"]["message"] == "ValueError: 1?"
    assert "x" not in answers.variables
    assert rig.store.problems["b.py"]["message"] == "ValueError: not ***"
    assert "hunter22" not in rig.store.problems["b.py"]["stack_trace"]
    assert "sesame-open" not in str(rig.store.registrations)
    assert "end of the output ---\n***" in rig.store.problems["b.py"]["stack_trace"]
