"""Functions in other interpreters: arguments, results, and virtual environments that are created for them."""

from __future__ import annotations

import os
import signal
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.unit.execution.world import World, carry_out, pushed, workload
from tradewind import DAG, task
from tradewind.execution.run_task import TaskResult, execute_task
from tradewind.model.branch import Branch
from tradewind.model.errors import DefinitionError, NotYetSupported
from tradewind.model.states import Outcome
from tradewind.operators.empty import EmptyOperator
from tradewind.operators.python import (
    BranchExternalPythonOperator,
    BranchPythonVirtualenvOperator,
    ExternalPythonOperator,
    PythonVirtualenvOperator,
)
from tradewind.operators.separate_interpreter import source_of

VALUE = "outside"


def _run(function: Any, **kwargs: Any) -> TaskResult:
    with DAG("d", schedule=None):
        operator = ExternalPythonOperator(task_id="t", python=sys.executable, python_callable=function, **kwargs)
    return carry_out(operator)


def _returned(function: Any, **kwargs: Any) -> Any:
    result = _run(function, **kwargs)
    assert result.outcome is Outcome.SUCCESS, result.reason
    return pushed(result).get("return_value")


# --- there and back ----------------------------------------------------------------------------------------------------


def test_the_function_runs_in_another_process_with_its_arguments(world: World) -> None:
    def report(a: int, ds: str, logical_date: Any, params: Any, b: int = 2, **others: Any) -> Any:
        import os

        return [os.getpid(), a, b, ds, type(logical_date).__module__, logical_date.isoformat(), params, sorted(others)[:2]]

    pid, *rest = _returned(report, op_args=["{{ 40 + 1 }}"], op_kwargs={"b": 5}, params={"x": 1})
    assert pid != os.getpid()
    day = "2024-03-05"
    assert rest == ["41", 5, day, "datetime", f"{day}T00:00:00+00:00", {"x": 1}, ["data_interval_end", "data_interval_start"]]


def test_arguments_that_cannot_be_passed_are_errors() -> None:
    def wants(ti: Any) -> None:
        """Never called."""

    def returns() -> Any:
        return lambda: 1

    assert "missing a required argument: 'ti'. Only these context variables can be passed to it: data_interval_end" in str(
        _run(wants).reason
    )
    assert "the result cannot be serialized with pickle" in str(_run(returns).reason)

    def takes(x: Any) -> None:
        """Never called."""

    assert "cannot serialize the arguments of takes" in str(_run(takes, op_args=[threading.Lock()]).reason)


def test_the_function_cannot_use_names_of_its_module() -> None:
    def looks() -> str:
        return VALUE

    assert "NameError: name 'VALUE' is not defined" in str(_run(looks).reason)


def test_async_functions_string_args_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async def report() -> Any:
        import os

        return [virtualenv_string_args, os.environ.get("A"), os.environ.get("B"), os.environ.get("TRADEWIND_ATTEMPT")]  # type: ignore[name-defined]  # noqa: F821

    monkeypatch.setenv("A", "task")
    monkeypatch.setenv("TRADEWIND_ATTEMPT", "1-2-3")
    given: Any = {"string_args": ["x", "y"], "env_vars": {"B": "mine"}}
    assert _returned(report, **given) == [["x", "y"], "task", "mine", "1-2-3"]
    assert _returned(report, inherit_env=False, **given) == [["x", "y"], None, "mine", "1-2-3"]


def test_multi_line_strings_are_unchanged() -> None:
    def text() -> str:
        return """one
  two"""

    assert _returned(text) == "one\n  two"
    assert source_of(text).startswith("if True:\n    def text")


def test_exceptions_skips_and_exit_codes(capfd: pytest.CaptureFixture[str]) -> None:
    def leave(code: int) -> None:
        import sys

        print("bye")
        sys.exit(code)

    def fail() -> None:
        raise ValueError("so it is")

    assert _run(leave, op_args=[3], skip_on_exit_code=[3]).outcome is Outcome.SKIPPED
    assert "ended with exit code 3" in str(_run(leave, op_args=[3]).reason)
    assert "before the function returned" in str(_run(leave, op_args=[0]).reason)
    assert "bye" in capfd.readouterr().out
    assert _run(fail).reason == "AirflowException: ValueError: so it is"
    assert 'raise ValueError("so it is")' in capfd.readouterr().out


def test_stopping_the_task_stops_the_interpreter(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)

    def sleeps(path: str) -> None:
        import os
        import signal

        with open(path, "w") as file:
            file.write(str(os.getpid()))
        signal.pause()

    with DAG("d", schedule=None):
        operator = ExternalPythonOperator(task_id="t", python=sys.executable, python_callable=sleeps, op_args=[str(ready)])
    found: list[TaskResult] = []
    thread = threading.Thread(daemon=True, target=lambda: found.append(execute_task(operator, workload("t"))))
    thread.start()
    pid = int(ready.read_text())
    operator.on_kill()
    thread.join(30)
    assert found[0].outcome is Outcome.FAILED
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def test_invalid_arguments_are_errors() -> None:
    def generates() -> Any:
        yield 1

    def plain() -> None:
        """Never called."""

    for function, kwargs, words in (
        (lambda: 1, {}, "defined with def"),
        (len, {}, "defined with def"),
        (generates, {}, "a generator"),
        (plain, {"serializer": "pickel"}, "Did you mean 'pickle'"),
        (plain, {"python": ""}, "must be the path"),
    ):
        with DAG("d", schedule=None), pytest.raises(DefinitionError, match=words):
            ExternalPythonOperator(**{"task_id": "t", "python": "x", "python_callable": function, **kwargs})
    with pytest.raises(NotYetSupported, match="use_airflow_context"):
        _run(plain, use_airflow_context=True)
    with DAG("d", schedule=None):
        lost = ExternalPythonOperator(task_id="t", python="/no/python", python_callable=plain)
    assert "'/no/python', which is not an executable file" in str(carry_out(lost).reason)
    missing = _run(plain, serializer="dill")
    assert "pip install dill" in str(missing.reason)


# --- branches and decorators -------------------------------------------------------------------------------------------


def _choice(ds: str) -> str:
    return "a" if ds == "2024-03-05" else "b"


def test_branch_operators() -> None:
    with DAG("d", schedule=None):
        external = BranchExternalPythonOperator(task_id="t", python=sys.executable, python_callable=_choice)
        virtual = BranchPythonVirtualenvOperator(task_id="u", python_callable=_choice)
        [external, virtual] >> EmptyOperator(task_id="a")
        [external, virtual] >> EmptyOperator(task_id="b")
    assert carry_out(external).branch == carry_out(virtual).branch == Branch("follow", ("a",))


def test_decorators_of_the_operators() -> None:
    with DAG("d", schedule=None):

        @task.external_python(python=sys.executable)
        def one(x: int) -> int:
            return x + 1

        @task.branch_external_python(python="{{ params.python }}", params={"python": sys.executable})
        def two() -> list[str]:
            return ["end"]

        @task.virtualenv(requirements=["{{ 'unused' if False }}"], multiple_outputs=True)
        def three() -> dict[str, int]:
            return {"n": 3}

        @task.branch_virtualenv
        def four() -> None:
            return None

        made = [one(1), two(), three(), four()]
        made[0] >> made[1:] >> EmptyOperator(task_id="end")
    results = [carry_out(promise.operator) for promise in made]
    assert [pushed(result) for result in results] == [
        {"return_value": 2},
        {"return_value": ["end"], "skipmixin_key": {"followed": ["end"]}},
        {"return_value": {"n": 3}, "n": 3},
        {"skipmixin_key": {"followed": []}},
    ]
    assert [result.branch for result in results] == [None, Branch("follow", ("end",)), None, Branch("follow", ())]


# --- virtual environments ----------------------------------------------------------------------------------------------


def _prefix() -> Any:
    import importlib.util
    import sys

    return [sys.prefix, importlib.util.find_spec("msgspec") is not None]


def _virtual(**kwargs: Any) -> PythonVirtualenvOperator:
    with DAG("d", schedule=None):
        return PythonVirtualenvOperator(**{"task_id": "t", "python_callable": _prefix, **kwargs})


@pytest.mark.parametrize("with_uv", [False, True])
def test_an_environment_is_created_and_deleted(with_uv: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The packages that are installed beside Tradewind are available, unless system_site_packages is False."""
    if not with_uv:
        monkeypatch.setattr("shutil.which", lambda name: None)
    (prefix, sees), (other, blind) = (
        pushed(carry_out(_virtual(system_site_packages=packages)))["return_value"] for packages in (True, False)
    )
    assert (sees, blind) == (True, False)
    assert len({prefix, other, sys.prefix}) == 3
    assert not Path(prefix).exists()


def _wheel(folder: Path) -> Path:
    """A package that can be installed without an index."""
    path = folder / "fortune-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("fortune.py", "TOLD = 'it will rain'\n")
        wheel.writestr("fortune-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: fortune\nVersion: 1\n")
        wheel.writestr("fortune-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("fortune-1.dist-info/RECORD", "")
    return path


def test_requirements_are_installed(tmp_path: Path) -> None:
    def text() -> str:
        import fortune  # type: ignore[import-not-found]

        return str(fortune.TOLD)

    operator = _virtual(python_callable=text, requirements=[str(_wheel(tmp_path))], index_urls=[], system_site_packages=False)
    assert pushed(carry_out(operator)) == {"return_value": "it will rain"}


def test_a_kept_environment_is_created_once(tmp_path: Path, world: World) -> None:
    operator = _virtual(venv_cache_path="{{ params.folder }}", params={"folder": str(tmp_path / "kept")})
    first, second = (pushed(carry_out(operator))["return_value"][0] for _ in range(2))
    assert first == second
    assert Path(first).parent == tmp_path / "kept"
    (Path(first) / "complete.json").unlink()
    (Path(first) / "rest").touch()
    assert pushed(carry_out(operator))["return_value"][0] == first
    assert not (Path(first) / "rest").exists(), "one that was left half made is made anew"
    world.variables["python_virtualenv_operator_cache_key"] = "another"
    assert pushed(carry_out(operator))["return_value"][0] != first


def test_a_requirement_that_cannot_be_installed_fails_the_task(tmp_path: Path) -> None:
    result = carry_out(_virtual(requirements="./nothing-here", index_urls=[]))
    assert result.outcome is Outcome.FAILED
    assert "cannot create the virtual environment" in str(result.reason)
    result = carry_out(_virtual(python_version="9.99"))
    assert result.outcome is Outcome.FAILED


def test_arguments_of_the_installer(world: World) -> None:
    world.connections["index"] = {
        "conn_type": "package_index",
        "host": "https://i.example/simple",
        "login": "u",
        "password": "p@",
    }
    operator = _virtual(
        requirements="b\n\n a\n", serializer="cloudpickle", index_urls="https://x", index_urls_from_connection_ids="index"
    )
    assert operator._requirement_lines() == ["a", "b", "cloudpickle"]
    second = "https://u:p%40@i.example/simple"
    assert operator._index_variables() == {
        "PIP_INDEX_URL": "https://x",
        "UV_INDEX_URL": "https://x",
        "PIP_EXTRA_INDEX_URL": second,
        "UV_EXTRA_INDEX_URL": second,
    }
    assert _virtual()._index_variables() == _virtual(index_urls=[])._index_variables() == {}
    with pytest.raises(DefinitionError, match="python_version"):
        _virtual(python_version=3.12)
