from __future__ import annotations

import signal

import pytest

from tradewind.parser import problems

NOTE = """Fatal Python error: Aborted

Stack (most recent call first):
  File "/lib/x.py", line 9 in f
  File "/dags/a.py", line 7 in g
  File "/dags/a.py", line 3 in <module>
"""


@pytest.mark.parametrize(
    ("status", "note", "message", "line"),
    [
        (3 << 8, "", "importing it ended the process: exit code 3", None),
        (3 << 8, 'os._exit(3)\n  File "/dags/a.py", line 5 in <module>', "ended the process: os._exit(3) in line 5", 5),
        (signal.SIGSEGV, NOTE, "importing it crashed the interpreter: SIGSEGV in line 7", 7),
        (signal.SIGKILL, "", "importing it ended the process: SIGKILL; the kernel sends this when", None),
        (signal.SIGXCPU, NOTE, "importing it used more than 31 s of CPU time (setting parser.timeout) in line 7", 7),
        (signal.SIGRTMIN + 3, "", "crashed the interpreter: signal", None),
    ],
)
def test_every_end_of_a_process_has_a_message(status: int, note: str, message: str, line: int | None) -> None:
    problem = problems.from_status(status, note, "/dags/a.py", 31)
    assert message in problem.message
    assert problem.line == line


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("No module named 'upath'", "Install it in the environment of Tradewind: pip install universal-pathlib"),
        ("It needs universal-pathlib: pip install --upgrade universal-pathlib", "It needs universal-pathlib"),
    ],
)
def test_a_missing_module_has_one_advice(said: str, expected: str) -> None:
    message = problems.from_exception(ModuleNotFoundError(said, name="upath"), "/dags/a.py").message
    assert expected in message
    assert message.count("pip install") == 1


class Hostile(Exception):
    def __str__(self) -> str:
        return "x" * 100_000 + "\n"


def test_messages_and_traces_have_a_size_limit() -> None:
    try:
        raise Hostile
    except Hostile as error:
        problem = problems.from_exception(error, "/dags/a.py")
    assert len(problem.message) <= problems.MESSAGE_MAX
    assert len(problem.stack_trace) <= problems.TRACE_MAX + 1


def test_an_error_in_a_helper_is_shown_with_the_line_of_the_dag_file() -> None:
    namespace: dict[str, object] = {}
    exec(compile("def helper():\n    raise KeyError('key')\n", "/dags/helper.py", "exec"), namespace)
    try:
        exec(compile("\n\nhelper()\n", "/dags/a.py", "exec"), namespace)
    except KeyError as error:
        problem = problems.from_exception(error, "/dags/a.py")
    assert problem.message == "KeyError: key"
    assert problem.line == 3
    assert 'File "/dags/helper.py", line 2, in helper' in problem.stack_trace


def test_a_syntax_error_in_a_helper_has_the_line_of_the_import() -> None:
    try:
        try:
            compile("x = (", "/dags/helper.py", "exec")
        except SyntaxError as inner:
            error = inner
        exec(compile("raise error", "/dags/a.py", "exec"), {"error": error})
    except SyntaxError as raised:
        problem = problems.from_exception(raised, "/dags/a.py")
    assert problem.line == 1
    assert "(helper.py, line 1)" in problem.message


@pytest.mark.parametrize(
    ("module", "hint"),
    [
        ("pandas", "pip install pandas"),
        ("yaml.nodes", "pip install PyYAML"),
        ("google.cloud.bigquery", "pip install google-cloud-bigquery"),
        ("clickhouse_driver", "pip install clickhouse-driver"),
        ("helpers_of_our_team", "if it is your own module, put it into the DAG folder"),
    ],
)
def test_a_missing_package_is_named_as_pip_installs_it(module: str, hint: str) -> None:
    error = ModuleNotFoundError(f"No module named {module!r}", name=module)
    assert hint in problems.from_exception(error, "/dags/a.py").message


def test_a_missing_module_of_airflow_gets_no_hint_about_pip() -> None:
    error = ModuleNotFoundError("No module named 'airflow.nothing'", name="airflow.nothing")
    assert problems.from_exception(error, "/dags/a.py").message == "ModuleNotFoundError: No module named 'airflow.nothing'"


@pytest.mark.parametrize(
    "source",
    [
        'print "hello"',
        "try:\n    pass\nexcept ImportError, error:\n    pass",
        "day = 02",
        "import urllib2",
        "for i in xrange(3): pass",
        "for key in {}.iteritems(): pass",
    ],
)
def test_a_file_for_python_2_is_recognized(source: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011  one of many
        exec(compile(source, "/dags/a.py", "exec"), {})
    assert "is written for Python 2" in problems.from_exception(caught.value, "/dags/a.py").message


@pytest.mark.parametrize("source", ["x = (1", "import own_module", "print(nothing)", "{}.nothing()"])
def test_other_errors_do_not_mention_python_2(source: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011  one of many
        exec(compile(source, "/dags/a.py", "exec"), {})
    assert "Python 2" not in problems.from_exception(caught.value, "/dags/a.py").message
