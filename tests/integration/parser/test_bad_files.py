"""A DAG file may do anything to the process that reads it: the result is an error with a line, and the other files are read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.integration.parser.running_parser import dag_text
from tradewind.parser.config import ParserConfig
from tradewind.parser.parse_once import parse_folder, parse_once
from tradewind.parser.parse_result import FileOutcome

HEAD = "# a dag of tradewind\n"
TIMEOUT_SECONDS = 3

BAD: dict[str, tuple[str, int | None, str]] = {
    # name: (text below HEAD, line, what the message says)
    "syntax": ("x = (\n", 2, "SyntaxError: '(' was never closed (syntax.py, line 2)"),
    "null_byte": ("x = '\0'\n", None, "source code string cannot contain null bytes"),
    "import_error": ("import no_such_module\n", 2, "ModuleNotFoundError: No module named 'no_such_module'"),
    "raises": ("def f():\n    raise ValueError('two\\nlines')\nf()\n", 3, "ValueError: two lines"),
    "sys_exit": ("import sys\nsys.exit(3)\n", 3, "importing it called sys.exit(3) in line 3"),
    "os_exit": ("import os\n\nos._exit(4)\n", 4, "importing it ended the process: os._exit(4) in line 4"),
    "segfault": ("import ctypes\nctypes.string_at(0)\n", 3, "importing it crashed the interpreter: SIGSEGV in line 3"),
    "abort": ("import os\nos.abort()\n", 3, "importing it crashed the interpreter: SIGABRT in line 3"),
    "kills_itself": ("import os\nos.kill(os.getpid(), 9)\n", None, "importing it ended the process: SIGKILL"),
    "kills_parent": (
        "import os\nos.kill(os.getppid(), 9)\n",
        None,
        "importing it killed the process that reads DAG files (SIGKILL)",
    ),
    "endless": ("while True: pass\n", 2, "importing endless.py took longer than 3 s (setting parser.timeout) and was stop"),
    "sleeps": ("import time\ntime.sleep(1000)\n", 3, "importing sleeps.py took longer than 3 s"),
    "deaf": (
        "import signal, time\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True:\n    time.sleep(1)\n",
        None,
        "importing deaf.py took longer than 3 s",
    ),
    "recursion": ("def f(n):\n    return f(n + 1)\nf(0)\n", 3, "RecursionError: maximum recursion depth exceeded"),
    "eight_gigabytes": (
        "x = bytearray(8 << 30)\n",
        2,
        "MemoryError in line 2: importing it needs more than 600 MiB (setting parser.memory_limit_mb)",
    ),
    "hoards": ("x = []\nwhile True:\n    x.append(bytearray(1 << 24))\n", 4, "MemoryError in line 4"),
    "closes_files": ("import os\nos.closerange(0, 256)\n", None, "importing it closed file descriptors"),
    "prints_and_fails": ("print('last words')\nraise KeyError('k')\n", 3, "KeyError: k"),
    "cycle": (
        "from tradewind import DAG\nfrom tradewind.operators.empty import EmptyOperator\nwith DAG('c'):\n"
        "    a = EmptyOperator(task_id='a')\n    b = EmptyOperator(task_id='b')\n    a >> b >> a\n",
        4,
        "the dependencies contain a cycle: a >> b >> a",
    ),
    "duplicate_task": (
        "from tradewind import DAG\nfrom tradewind.operators.empty import EmptyOperator\nwith DAG('c'):\n"
        "    EmptyOperator(task_id='a')\n    EmptyOperator(task_id='a')\n",
        6,
        "there is already a task 'a'",
    ),
    "misspelt": ("from tradewind import DAG\nDAG('d', shedule='@daily')\n", 3, "Did you mean 'schedule'?"),
    "too_large": (
        "from tradewind import DAG\nfrom tradewind.operators.empty import EmptyOperator\nwith DAG('l'):\n"
        "    for n in range(12_001): EmptyOperator(task_id=f't{n}')\n",
        4,
        "the DAG has 12001 tasks; at most 12000 are allowed (setting parser.max_tasks_per_dag)",
    ),
}

GOOD = {
    "prints_a_gigabyte": HEAD + "for _ in range(1000):\n    print('x' * (1 << 20))\n" + dag_text("prints"),
    "forks": HEAD + "import os, time\nif os.fork() == 0:\n    time.sleep(1000)\n" + dag_text("forks"),
    "forks_and_returns": HEAD + "import os\nos.fork()\n" + dag_text("forks2"),
    "starts_a_thread": HEAD
    + "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\n"
    + dag_text("thread"),
    "leaves_exit_handler": HEAD + "import atexit, time\natexit.register(time.sleep, 1000)\n" + dag_text("handler"),
    "ten_thousand": dag_text("ten_thousand", tasks=10_000),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, FileOutcome]:
    folder = tmp_path_factory.mktemp("dags")
    for name, (text, _, _) in BAD.items():
        (folder / f"{name}.py").write_text(HEAD + text)
    (folder / "plain.py").write_text(dag_text("plain"))
    config = ParserConfig(
        str(folder), processes=3, timeout=TIMEOUT_SECONDS * 1_000_000, memory_limit=600 << 20, max_tasks_per_dag=12_000
    )
    return {outcome.file.removesuffix(".py"): outcome for outcome in parse_folder(config)}


@pytest.fixture(scope="module")
def good_outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, FileOutcome]:
    folder = tmp_path_factory.mktemp("dags")
    for name, text in GOOD.items():
        (folder / f"{name}.py").write_text(text)
    return {
        outcome.file.removesuffix(".py"): outcome for outcome in parse_folder(ParserConfig(str(folder), timeout=60_000_000))
    }


@pytest.mark.spec("S91", "S96", "S465")
@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_has_an_error_with_a_line(outcomes: dict[str, FileOutcome], name: str) -> None:
    _, line, sentence = BAD[name]
    problem = outcomes[name].problem
    assert problem is not None
    assert sentence in problem.message
    assert "\n" not in problem.message
    assert problem.line == line
    assert outcomes[name].dags == ()
    assert outcomes[name].duration < (TIMEOUT_SECONDS + 2) * 1_000_000


@pytest.mark.spec("S242")
def test_the_other_files_are_read(outcomes: dict[str, FileOutcome]) -> None:
    assert outcomes["plain"].problem is None
    assert [dag.dag_id for dag in outcomes["plain"].dags] == ["plain"]


@pytest.mark.parametrize("name", GOOD)
def test_an_unusual_file_is_read(good_outcomes: dict[str, FileOutcome], name: str) -> None:
    assert good_outcomes[name].problem is None
    assert len(good_outcomes[name].dags) == 1


@pytest.mark.spec("S112")
@pytest.mark.parametrize("processes", [1, 2])
def test_the_configured_number_of_files_is_read_concurrently(tmp_path: Path, processes: int) -> None:
    """Each of two files waits for the other one, so one process alone would never read the second file."""
    meeting, folder = tmp_path / "meeting", tmp_path / "dags"
    os.mkfifo(meeting)
    folder.mkdir()
    (folder / "reads.py").write_text(HEAD + f"open({str(meeting)!r}).read()\n" + dag_text("reads"))
    (folder / "writes.py").write_text(HEAD + f"open({str(meeting)!r}, 'w').close()\n" + dag_text("writes"))
    timeout = 1_000_000 if processes == 1 else 30_000_000
    found = list(parse_folder(ParserConfig(str(folder), processes=processes, timeout=timeout)))
    assert [outcome.problem is None for outcome in found] == [processes == 2] * 2


def test_a_traceback_contains_only_frames_of_the_author(outcomes: dict[str, FileOutcome]) -> None:
    problem = outcomes["duplicate_task"].problem
    assert problem is not None
    assert "EmptyOperator(task_id='a')" in problem.stack_trace
    assert "/src/tradewind/" not in problem.stack_trace
    assert "importlib" not in problem.stack_trace
    segfault = outcomes["segfault"].problem
    assert segfault is not None
    assert "segfault.py" in segfault.stack_trace
    assert "fork_server" not in segfault.stack_trace


def test_the_output_of_a_failing_file_is_shown(outcomes: dict[str, FileOutcome]) -> None:
    problem = outcomes["prints_and_fails"].problem
    assert problem is not None
    assert problem.stack_trace.endswith("--- end of the output ---\nlast words\n")


def test_good_dags_of_a_file_work_beside_bad_ones(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(
        dag_text("good")
        + "a = DAG('bad_cron', schedule='61 * * * *')\n"
        + "with DAG('circle'):\n    x = EmptyOperator(task_id='x')\n    y = EmptyOperator(task_id='y')\n    x >> y >> x\n"
    )
    outcome = parse_once(str(tmp_path / "f.py"))
    assert [dag.dag_id for dag in outcome.dags] == ["good"]
    assert outcome.problem is not None
    assert outcome.problem.message.startswith("2 problems: ")
    assert "the minute field is '61'" in outcome.problem.message
    assert "x >> y >> x" in outcome.problem.message


def test_of_two_dags_with_one_id_the_last_exists_with_a_warning(tmp_path: Path) -> None:
    """Airflow loads such a file."""
    (tmp_path / "f.py").write_text(
        "from tradewind import DAG\nwith DAG('d', tags=['first']):\n    pass\nwith DAG('d', tags=['last']):\n    pass\n"
    )
    outcome = parse_once(str(tmp_path / "f.py"))
    assert outcome.problem is None
    (dag,) = outcome.dags
    assert (dag.dag_id, b"first" in dag.definition, b"last" in dag.definition) == ("d", False, True)
    (warning,) = [text for text in dag.warnings if "more than once" in text]
    assert "line 2 of" in warning
    assert "line 4 of" in warning


AUTHOR = """
from datetime import datetime
from airflow import DAG
from airflow.operators.bash_operator import BashOperator

first = DAG("first", schedule_interval="@daily", start_date=datetime(2026, 1, 1), tags="one")
a = BashOperator(task_id="a", bash_command="true", dag=first, retries=-1)
again = BashOperator(task_id="a", bash_command="true", dag=first)
with DAG("second", schedule_interval=None, start_date=datetime(2026, 1, 1)) as second:
    b = BashOperator(task_id="b", bash_command="true", on_failure_callback=[object()])
    b > BashOperator(task_id="c", bash_command="true")
"""


def test_a_definition_has_the_warnings_about_its_own_dag(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(AUTHOR)
    warnings = {dag.dag_id: dag.warnings for dag in parse_once(str(tmp_path / "f.py")).dags}
    first, second = "\n".join(warnings["first"]), "\n".join(warnings["second"])
    for text in ("tags is the text 'one'", "retries is -1; it is replaced by 0", "already a task 'a'; this one is left out"):
        assert text in first
        assert text not in second
    for text in ("on_failure_callback has <object object>, which is not a function", "Did you mean b >> c?"):
        assert text in second
        assert text not in first
    assert "renamed" not in first, "an old name that works as before is no warning"


def test_warnings_are_the_same_at_each_reading(tmp_path: Path) -> None:
    """The definition contains them, and another definition would be a new version of the DAG."""
    (tmp_path / "f.py").write_text(AUTHOR)
    first = [dag.hash for dag in parse_once(str(tmp_path / "f.py")).dags]
    (tmp_path / "f.py").write_text(f"# a comment moves all lines{AUTHOR}")
    assert [dag.hash for dag in parse_once(str(tmp_path / "f.py")).dags] == first


def test_many_warnings_are_counted(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(
        "from tradewind import DAG\nfrom tradewind.operators.empty import EmptyOperator\nwith DAG('d'):\n"
        "    for i in range(50):\n        EmptyOperator(task_id=f't{i}', retries=-1 - i)\n"
    )
    (dag,) = parse_once(str(tmp_path / "f.py")).dags
    assert len(dag.warnings) == 21
    assert dag.warnings[-1] == "30 more warnings of this kind are not shown"


def test_a_dag_file_sees_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND__SECRETS__FERNET_KEY", "open sesame")
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql://me:open sesame@host/db")
    monkeypatch.setenv("AIRFLOW_VAR_REGION", "north")
    (tmp_path / "f.py").write_text(
        "import os, subprocess\nfrom tradewind import DAG\n"
        "assert not [name for name, value in os.environ.items() if 'sesame' in value], os.environ\n"
        "seen = open(f'/proc/{os.getppid()}/environ').read()\nassert 'sesame' not in seen\n"
        "DAG(os.environ['AIRFLOW_VAR_REGION'])\nd = DAG('d')\n"
    )
    outcome = parse_once(str(tmp_path / "f.py"))
    assert outcome.problem is None, outcome.problem


def test_no_byte_code_is_written_into_the_dag_folder(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("NAME = 'd'\n")
    (tmp_path / "f.py").write_text("import helper\nfrom tradewind import DAG\nd = DAG(helper.NAME)\n")
    assert [dag.dag_id for dag in parse_once(str(tmp_path / "f.py")).dags] == ["d"]
    assert sorted(os.listdir(tmp_path)) == ["f.py", "helper.py"]


def test_equal_files_have_equal_definitions_in_every_zygote(tmp_path: Path) -> None:
    text = dag_text("d", tasks=0) + "    for name in {'a', 'b', 'c', 'd', 'e', 'f'}:\n        EmptyOperator(task_id=name)\n"
    (tmp_path / "f.py").write_text(text)
    first, second = (parse_once(str(tmp_path / "f.py")) for _ in range(2))
    assert first.dags == second.dags
    assert first.file_hash == second.file_hash


def test_a_missing_file_is_an_error_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.py"):
        parse_once(str(tmp_path / "nowhere.py"))
