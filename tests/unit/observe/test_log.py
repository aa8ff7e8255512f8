"""Each log record is one line."""

from __future__ import annotations

import io
import logging
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tradewind.observe.log import LineFormatter, Log, configure


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    root, ours = logging.getLogger(), logging.getLogger("tradewind")
    before = root.level, ours.level
    stream = io.StringIO()
    configure("scheduler", "INFO", stream)
    yield stream
    root.setLevel(before[0])
    ours.setLevel(before[1])
    for handler in [h for h in root.handlers if h.get_name() == "tradewind"]:
        root.removeHandler(handler)


def test_a_record_has_date_level_component_message_and_values(out: io.StringIO) -> None:
    Log("scheduler").info("run finished", dag_id="weather", took_ms=12, run_id="manual 1")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z INFO    scheduler run finished "
        r'dag_id=weather took_ms=12 run_id="manual 1"\n',
        out.getvalue(),
    )


@pytest.mark.spec("S21")
def test_the_date_is_utc_to_the_microsecond() -> None:
    record = logging.LogRecord("tradewind", logging.INFO, "", 0, "hello", (), None)
    record.created = 1_769_839_200.25
    assert LineFormatter("api").format(record) == "2026-01-31T06:00:00.250000Z INFO    api hello"


def test_a_part_is_named_after_the_component(out: io.StringIO) -> None:
    Log("leases").warning("lease lost")
    assert " WARNING scheduler/leases lease lost\n" in out.getvalue()


def test_line_breaks_quotes_and_escape_codes_are_escaped(out: io.StringIO) -> None:
    Log("x").info("a\nb\x1b[31m 100 %s", value='say "hi"\r\n\u2028C:\\')
    assert out.getvalue().count("\n") == 1
    assert out.getvalue().endswith('a\\nb\\x1b[31m 100 %s value="say \\"hi\\"\\r\\n\\u2028C:\\\\"\n')


def test_an_exception_is_a_value_with_its_frames_and_its_cause(out: io.StringIO) -> None:
    try:
        try:
            int("seven")
        except ValueError as error:
            raise RuntimeError("two\nlines") from error
    except RuntimeError:
        Log("x").exception("could not count", of=7)
    line = out.getvalue()
    assert line.count("\n") == 1
    assert 'could not count of=7 error="RuntimeError: two\\nlines" at="observe/test_log.py:' in line
    assert "because=\"ValueError: invalid literal for int() with base 10: 'seven'\" at=" in line


def test_warnings_of_libraries_have_the_same_format(out: io.StringIO) -> None:
    logging.getLogger("urllib").info("chatter")
    logging.getLogger("urllib").warning("retrying %s", "soon")
    assert [line.split(" ", 1)[1] for line in out.getvalue().splitlines()] == ["WARNING scheduler/urllib retrying soon"]


def test_records_below_the_level_are_not_written(out: io.StringIO) -> None:
    Log("x").debug("detail")
    assert out.getvalue() == ""
    configure("scheduler", "debug", out)
    Log("x").debug("detail")
    assert out.getvalue().count("detail") == 1, "configured twice, written once"


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="no log level 'LOUD'"):
        configure("x", "LOUD")


def test_by_default_it_goes_to_stderr() -> None:
    code = "from tradewind.observe.log import *; configure('api'); Log('api').info('up', port=8080)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr.endswith("Z INFO    api up port=8080\n")
