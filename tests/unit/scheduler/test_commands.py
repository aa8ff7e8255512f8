"""Every command: its effect, its answer, its errors, and its repetition."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest

from tests.commands import incoming, request
from tests.unit.scheduler.bench import NOW, Bench, task
from tradewind.api.responses import status_of
from tradewind.model import errors
from tradewind.model.definition import DagDefinition, ExternalMark, ParamDefinition, encode_definition, version_hash
from tradewind.model.errors import Conflict, NotFound, StatementError, WrongArgument
from tradewind.model.moments import DAY
from tradewind.model.states import RunState
from tradewind.scheduler.commands.handler import Commands, handlers
from tradewind.scheduler.commands.refusal import refusal
from tradewind.scheduler.explain.questions import QUESTIONS
from tradewind.wire.commands import COMMANDS, Command, Ping, Trigger, receive, request_for, result_type
from tradewind.wire.messages import CommandRequest, CommandResult


def ask(bench: Bench, op: str, command: str, **args: Any) -> CommandResult:
    """As the scheduler's server does: a command that cannot be received is answered with its error."""
    try:
        asked = receive(request(op, command, args))
    except WrongArgument as error:
        return refusal(op, command, error)
    return bench.commands.run(asked)[0]


def test_a_repeated_command_has_its_answer_and_no_second_effect(bench: Bench) -> None:
    bench.dag("d", task("a"))
    first = ask(bench, "x", "trigger", dag_id="d")
    assert first.error is None
    assert ask(bench, "x", "trigger", dag_id="d") == first
    assert len(bench.runs("d")) == 1
    again = Commands(bench.store, bench.clock, bench.config, str.encode)
    assert again.run(incoming("x", "trigger", {"dag_id": "d"}))[0] == first, "another scheduler remembers too"


def test_a_superseded_scheduler_executes_no_command(bench: Bench) -> None:
    bench.dag("d", task("a"))
    bench.commands.epoch = bench.store.begin_epoch("here", 1, "boot", NOW)
    assert ask(bench, "x", "trigger", dag_id="d", run_id="r").error is None
    bench.store.begin_epoch("here", 2, "boot", NOW)
    assert ask(bench, "y", "trigger", dag_id="d", run_id="s").error == "Stale"
    assert [row.run_id for row in bench.runs("d")] == ["r"]


def test_a_failed_command_is_answered_and_changes_nothing(bench: Bench) -> None:
    bench.dag("daily", task("a"))
    for args, error, words in (
        ({"dag_id": "dialy"}, "NotFound", "Did you mean 'daily'?"),
        ({}, "WrongArgument", "missing required field `dag_id`"),
        ({"dag_id": "daily", "run_id": "a/b"}, "WrongName", "a/b"),
        ({"dag_id": "daily", "conf": [1]}, "WrongConf", "conf must be an object"),
        ({"dag_id": "daily", "run_type": "sometimes"}, "WrongArgument", "sometimes"),
        ({"dag_id": "daily", "logical_date": "yesterday"}, "WrongArgument", "`$.logical_date`"),
        ({"dag_id": "daily", "logical_date": 2**63}, "WrongArgument", "`$.logical_date`"),
        ({"dag_id": "daily", "comf": {}}, "WrongArgument", "unknown field `comf`"),
    ):
        result = ask(bench, f"op {words}", "trigger", **args)
        assert (result.error, words in (result.message or "")) == (error, True), result
    assert bench.runs("daily") == []
    assert "there is no command 'triger'. Did you mean 'trigger'?" in (ask(bench, "y", "triger").message or "")


def test_every_command_has_one_handler_of_its_types() -> None:
    """A handler takes its command, and returns the result that the command names."""
    found = handlers()
    assert {*found, *QUESTIONS, Ping} == set(COMMANDS.values())
    assert not found.keys() & QUESTIONS.keys()
    for kind, handler in found.items():
        types = get_type_hints(handler)
        assert (types["command"], types["return"]) == (kind, result_type(kind)), handler


def test_a_scheduler_can_receive_every_command() -> None:
    """A command that is not in the union of all commands is refused, however complete its handler is."""

    def kinds(base: type[Command[Any]]) -> set[type[Command[Any]]]:
        below = [one for one in base.__subclasses__() if one.__module__ == base.__module__]
        return {one for child in below for one in (kinds(child) or {child})}

    assert kinds(Command) == set(COMMANDS.values())


def test_a_conf_that_no_message_holds_is_refused_before_it_is_sent() -> None:
    with pytest.raises(WrongArgument, match="trigger: an argument cannot be sent"):
        request_for("x", Trigger("daily", conf={"n": 2**64}), "ann")


def test_a_command_of_another_release_is_refused_with_a_sentence() -> None:
    with pytest.raises(WrongArgument, match=r"no command 'fly'.*of different releases"):
        receive(request("x", "fly", {"dag_id": "d"}))
    with pytest.raises(WrongArgument, match=r"no command ''.*of different releases"):
        receive(CommandRequest("x"))


@pytest.mark.parametrize("error", [KeyError("slots"), TypeError("no"), ValueError("no"), StatementError("no such column")])
def test_an_internal_error_is_answered_with_the_id_in_the_log(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """It is not an error of the client."""
    bench.dag("d", task("a"))

    def faulty(*given: Any, **more: Any) -> None:
        raise error

    monkeypatch.setattr(bench.watched, "create_run", faulty, raising=False)
    result = ask(bench, "x", "trigger", dag_id="d")
    assert result.error == "InternalError"
    (record,) = [record for record in caplog.records if "fault" in getattr(record, "values", {})]
    assert record.values["fault"] in (result.message or "")  # type: ignore[attr-defined]
    assert record.exc_info is not None
    assert status_of(errors.InternalError(result.message)) == 500
    assert ask(bench, "x", "trigger", dag_id="d").error == "InternalError", "no answer of that is remembered"


@pytest.mark.parametrize("run_id", [".", "..", " . ", " ", "a/../b", "../x"])
def test_a_run_id_that_a_url_would_lose_is_refused(bench: Bench, run_id: str) -> None:
    bench.dag("d", task("a"))
    result = ask(bench, "x", "trigger", dag_id="d", run_id=run_id)
    assert (result.error, "run id" in (result.message or "")) == ("WrongName", True), result
    assert bench.runs("d") == []


@pytest.mark.spec("S193", "S194")
def test_trigger_takes_what_it_is_given(bench: Bench) -> None:
    bench.dag("d", task("a"), params=(ParamDefinition("n", default=1, schema={"type": "integer"}),), paused=True)
    row = bench.command(
        "trigger", dag_id="d", logical_date=NOW - DAY, conf={"n": 2}, note="why not", interval_start=1, interval_end=2
    )
    assert row["run_id"] == "manual__2025-12-31T00:00:00+00:00"
    assert (row["conf"], row["note"], row["interval_start"], row["interval_end"]) == ({"n": 2}, "why not", 1, 2)
    assert (row["triggering_user"], row["state"]) == ("ann", "queued")
    with pytest.raises(Conflict, match="n"):
        bench.command("trigger", dag_id="d", conf={"n": "two"})
    one, two = (bench.command("trigger", dag_id="d")["run_id"] for _ in range(2))
    assert one != two


def test_a_task_creates_a_run_or_finds_the_existing_one(bench: Bench) -> None:
    bench.dag("d", task("a"), paused=True)

    def trigger(**args: Any) -> Any:
        return bench.command("trigger_from_task", dag_id="d", **args)

    made = trigger(run_id="r", logical_date=NOW, conf={"n": 1}, note="so")
    assert made == {"done": "created", "run_id": "r", "logical_date": NOW}
    (row,) = bench.runs("d")
    assert (row.run_type.value, row.triggered_by, row.conf, row.note) == ("operator_triggered", "operator", b'{"n":1}', "so")
    by_date = {"done": "exists", "run_id": "r", "logical_date": NOW}
    assert trigger(run_id="r") == trigger(logical_date=NOW) == trigger(run_id="other", logical_date=NOW) == by_date
    assert trigger(run_id="r", fail_when_paused=True)["done"] == "paused"
    assert trigger(logical_date=NOW + 1)["done"] == "created"
    assert trigger()["run_id"].startswith("manual__")
    assert len(bench.runs("d")) == 3
    with pytest.raises(NotFound, match="There is no DAG"):
        bench.command("trigger_from_task", dag_id="e")


def test_a_task_clears_the_run_that_exists(bench: Bench) -> None:
    bench.dag("d", task("a"))
    bench.command("trigger_from_task", dag_id="d", run_id="r")
    bench.work()
    assert bench.run("r").state is RunState.SUCCESS
    cleared = bench.command("trigger_from_task", dag_id="d", run_id="r", reset=True)
    assert (cleared["done"], cleared["run_id"]) == ("cleared", "r")
    assert bench.run("r").state in (RunState.QUEUED, RunState.RUNNING)
    bench.command("forget_files", bundle="dags", files=["d.py"])
    with pytest.raises(Conflict, match="not in the DAG folder any more"):
        bench.command("trigger", dag_id="d")


def test_pause_says_whether_it_changed(bench: Bench) -> None:
    bench.dag("d", task("a"))
    assert bench.command("set_paused", dag_id="d", is_paused=True)["changed"] is True
    assert bench.command("set_paused", dag_id="d", is_paused=True)["changed"] is False
    with pytest.raises(NotFound):
        bench.command("set_paused", dag_id="e", is_paused=True)


@pytest.mark.spec("S439", "S463")
def test_clear_selects_task_instances(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"), task("c", "b"), task("x"))
    for number in (1, 2):
        bench.trigger("d", f"r{number}", day=number)
        bench.finish(f"r{number}.a", f"r{number}.x")
        bench.fail(f"r{number}.b")

    def chosen(**args: Any) -> list[str]:
        found = bench.command("clear", dag_id="d", dry_run=True, **args)
        return [f"{one['run_id']}.{one['task_id']}" for one in found["task_instances"]]

    assert chosen(run_id="r1", task_ids=["b"]) == ["r1.b"]
    assert chosen(run_id="r1", task_ids=["b"], downstream=True) == ["r1.b", "r1.c"]
    assert chosen(run_id="r1", task_ids=["b"], upstream=True) == ["r1.a", "r1.b"]
    assert chosen(run_id="r2", only_failed=True) == ["r2.b", "r2.c"]
    assert chosen(only_failed=True) == ["r1.b", "r1.c", "r2.b", "r2.c"]
    assert chosen(only_running=True) == []
    assert {row.state for row in bench.runs("d")} == {RunState.FAILED}, "a dry run changes nothing"
    with pytest.raises(NotFound, match="no task"):
        chosen(run_id="r1", task_ids=["bb"])
    bench.command("clear", dag_id="d", only_failed=True)
    bench.work()
    assert {row.state for row in bench.runs("d")} == {RunState.SUCCESS}
    bench.check()


@pytest.mark.spec("S122", "S123")
def test_pools_variables_connections(bench: Bench) -> None:
    bench.command("set_pool", name="p", slots=3, description="d")
    assert next(pool for pool in bench.store.pools() if pool.name == "p").slots == 3
    for args, words in (
        ({"name": "p", "slots": -2}, "-2"),
        ({"name": " ", "slots": 1}, "name"),
        ({"name": "p", "slots": "x"}, "slots"),
    ):
        with pytest.raises((Conflict, WrongArgument), match=words):
            bench.command("set_pool", **args)
    bench.command("delete_pool", name="p")
    with pytest.raises(NotFound):
        bench.command("delete_pool", name="p")
    with pytest.raises(Conflict):
        bench.command("delete_pool", name="default_pool")
    bench.command("set_variable", key="k", value="secret", description=None)
    row = bench.store.variable("k")
    assert row is not None
    assert row.is_encrypted
    with pytest.raises(Conflict, match="needs a key"):
        bench.command("set_variable", key="", value="x")
    bench.command("delete_variable", key="k")
    assert bench.store.variable("k") is None
    bench.command("set_connection", conn_id="c", conn_type="http", password="pw", port=80)
    with pytest.raises(Conflict):
        bench.command("set_connection", conn_id="c", conn_type="http", replace=False)
    bench.command("delete_connection", conn_id="c")
    assert bench.store.connections() == []


def test_commands_of_the_parser(bench: Bench) -> None:
    data = encode_definition(DagDefinition("d", tasks=(task("a"),), is_paused_upon_creation=False))
    file: dict[str, Any] = {
        "bundle": "dags",
        "file": "d.py",
        "file_hash": "h1",
        "dags": [["d", data, version_hash(data)]],
        "duration": 5,
        "at": NOW,
    }
    assert bench.command("register_file", **file) == {"changed": ["d"]}
    assert bench.command("register_files", files=[file]) == {"changed": []}
    assert bench.command("known_files", bundle="dags") == {"d.py": ("h1", False)}
    problem = {"message": "SyntaxError", "stack_trace": "…", "line": 3}
    assert bench.command("register_file", **{**file, "dags": [], "problem": problem}) == {"changed": []}
    bench.trigger("d", "r")
    bench.work()
    assert bench.run("r").state is RunState.SUCCESS, "the last good version runs"
    assert bench.command("forget_files", bundle="dags", files=["d.py"]) == {"gone": ["d"]}
    assert bench.command("known_files", bundle="dags") == {}
    bench.check()


def test_a_run_continues_with_the_newest_version(bench: Bench) -> None:
    bench.dag("d", task("a"), task("b", "a"))
    bench.trigger("d", "old")
    bench.dag("d", task("a"), task("c", "a"))
    bench.trigger("d", "new")
    bench.restart()
    bench.work()
    assert bench.states("old") == {"a": "success", "b": "removed", "c": "success"}
    assert bench.states("new") == {"a": "success", "c": "success"}
    assert set(bench.run_states("d").values()) == {"success"}
    bench.check()


def test_a_clear_includes_setups_and_teardowns(bench: Bench) -> None:
    """Without what its setup makes it could not run again."""
    bench.dag(
        "d",
        task("up", is_setup=True),
        task("work", "up"),
        task("down", "up", "work", is_teardown=True, trigger_rule="all_done_setup_success"),
        task("after", "work"),
    )
    bench.trigger("d", "r")
    bench.work()
    found = bench.command("clear", dag_id="d", run_id="r", task_ids=["work"], dry_run=True)
    assert [one["task_id"] for one in found["task_instances"]] == ["up", "work", "down"]


# --- external marks -------------------------------------------------------------------------------------------------------


def _marked(bench: Bench, dag_id: str, next_dag: str, depth: int = 10) -> None:
    """a → mark, which marks a of the next DAG; and a run of today, done."""
    bench.dag(dag_id, task("a"), task("mark", "a", external=ExternalMark(next_dag, "a", depth)), task("aside"))
    bench.trigger(dag_id, f"of_{dag_id}", logical_date=NOW)
    bench.work()


def test_clearing_an_external_task_marker_clears_its_task(bench: Bench) -> None:
    _marked(bench, "one", "two")
    _marked(bench, "two", "three")
    _marked(bench, "three", "nowhere")
    shown = bench.clear("one", "of_one", "mark", dry_run=True)["task_instances"]
    assert [(one["dag_id"], one["task_id"]) for one in shown] == [
        ("one", "mark"), ("two", "a"), ("two", "mark"), ("three", "a"), ("three", "mark")
    ]  # fmt: skip
    assert bench.run("of_two").state is RunState.SUCCESS
    assert bench.clear("one", "of_one", "mark")["task_instances"] == shown
    bench.process()
    assert bench.states("of_two") == {"a": "queued", "mark": "none", "aside": "success"}
    bench.work()
    assert [bench.run(f"of_{name}").state for name in ("one", "two", "three")] == [RunState.SUCCESS] * 3
    assert len(bench.clear("one", "of_one", "a")["task_instances"]) == 1


def test_external_task_markers_in_a_circle_and_of_other_dates(bench: Bench) -> None:
    _marked(bench, "one", "two")
    _marked(bench, "two", "one")
    assert len(bench.clear("one", "of_one", "mark", dry_run=True)["task_instances"]) == 4
    bench.trigger("one", "later", logical_date=NOW - DAY)
    bench.trigger("one", "dateless")
    bench.work()
    for run_id in ("later", "dateless"):
        assert len(bench.clear("one", run_id, "mark", dry_run=True)["task_instances"]) == 1


def test_too_many_external_task_markers_clear_nothing(bench: Bench) -> None:
    _marked(bench, "one", "two", depth=1)
    _marked(bench, "two", "three", depth=9)
    _marked(bench, "three", "nowhere")
    with pytest.raises(Conflict, match="more than 1 external markers follow each other, at task 'mark' of DAG 'two'"):
        bench.clear("one", "of_one", "mark")
    assert bench.run("of_one").state is RunState.SUCCESS
    assert len(bench.clear("two", "of_two", "mark")["task_instances"]) == 3
