"""Names, tags and lines of measurements."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tradewind.metrics.catalogue import metrics
from tradewind.metrics.config import MetricsConfig, read_config
from tradewind.metrics.lines import datagrams, lines_of
from tradewind.metrics.measurement import Measurement
from tradewind.metrics.names import Names, normalized

PLAIN = MetricsConfig("localhost", 8125)
FINISH = Measurement("count", "ti.finish", 1, {"dag_id": "d", "task_id": "g.t", "state": "success"})


def lines(measurement: Measurement, config: MetricsConfig = PLAIN) -> list[str]:
    return [line.decode() for line in lines_of(measurement, Names(config), config)]


def test_a_metric_has_its_older_name_too() -> None:
    """A dot in an id becomes `__`: the parts of the older name keep their places, as in Airflow 3.3."""
    assert lines(FINISH) == ["airflow.ti.finish.d.g__t.success:1|c", "airflow.ti.finish:1|c"]
    assert lines(FINISH, PLAIN._replace(legacy_names=False)) == ["airflow.ti.finish:1|c"]


def test_a_metric_without_the_needed_tags_has_only_its_new_name() -> None:
    assert lines(Measurement("count", "ti.finish", 1, {"dag_id": "d"})) == ["airflow.ti.finish:1|c"]


@pytest.mark.parametrize(
    ("measurement", "line"),
    [
        (Measurement("count", "n", 3), "n:3|c"),
        (Measurement("count", "n", -1), "n:-1|c"),
        (Measurement("count", "n", 1, {}, 0.5), "n:1|c|@0.5"),
        (Measurement("gauge", "n", 2.0), "n:2|g"),
        (Measurement("gauge", "n", 2.5), "n:2.5|g"),
        (Measurement("change", "n", 2), "n:+2|g"),
        (Measurement("change", "n", -2), "n:-2|g"),
        (Measurement("timing", "n", 12.5), "n:12.500000|ms"),
    ],
)
def test_each_kind_has_its_form(measurement: Measurement, line: str) -> None:
    assert lines(measurement, PLAIN._replace(prefix="")) == [line]


def test_a_negative_gauge_is_set_to_0_first() -> None:
    assert lines(Measurement("gauge", "n", -3)) == ["airflow.n:0|g", "airflow.n:-3|g"]


def test_telegraf_reads_tags_in_the_name() -> None:
    config = PLAIN._replace(tag_style="influxdb", disabled_tags="run_id,job.*")
    measurement = Measurement("count", "pool", 1, {"pool_name": "a b", "run_id": "r", "job_id": 7, "dag_id": None, "x": ""})
    assert lines(measurement, config) == ["airflow.pool,pool_name=a_b:1|c"]
    assert lines(FINISH, config) == [
        "airflow.ti.finish.d.g__t.success:1|c",
        "airflow.ti.finish,dag_id=d,task_id=g.t,state=success:1|c",
    ]


def test_datadog_reads_tags_at_the_end() -> None:
    config = PLAIN._replace(tag_style="datadog", constant_tags=("env:prod",), legacy_names=False)
    measurement = Measurement("timing", "n", 1, {"dag_id": "d", "odd": "a|b,c\nd"})
    assert lines(measurement, config) == ["airflow.n:1.000000|ms|#env:prod,dag_id:d,odd:a_b_c_d"]


@pytest.mark.parametrize(
    ("allow", "block", "sent"),
    [
        ("", "", ["scheduler_heartbeat", "ti.start", "pool.open_slots"]),
        ("^scheduler,TI", "", ["scheduler_heartbeat", "ti.start"]),
        ("", "pool,ti", ["scheduler_heartbeat"]),
        ("ti", "ti", ["ti.start"]),
    ],
)
def test_lists_choose_the_metrics(allow: str, block: str, sent: list[str]) -> None:
    names = Names(PLAIN._replace(allow=allow, block=block))
    every = [Measurement("count", name, 1) for name in ("scheduler_heartbeat", "ti.start", "pool.open_slots")]
    assert [name for one in every for name, _ in names.of(one)] == sent


def test_an_older_name_can_be_blocked_alone() -> None:
    assert lines(FINISH, PLAIN._replace(block=r"^ti\.finish\.")) == ["airflow.ti.finish:1|c"]


def test_a_name_that_servers_do_not_accept_is_dropped_and_counted() -> None:
    names = Names(PLAIN)
    assert names.of(Measurement("count", "two words", 1)) == []
    assert names.of(Measurement("count", "x" * 251, 1)) == []
    assert [name for name, _ in names.of(Measurement("count", "ti.start", 1, {"dag_id": "ü", "task_id": "t"}))] == ["ti.start"]
    assert names.invalid == 3
    assert normalized("my pool:ü") == "my_pool__"


def test_lines_share_datagrams_of_limited_size() -> None:
    assert datagrams([b"a" * 4, b"b" * 5, b"c", b"d" * 20], limit=10) == [b"aaaa\nbbbbb", b"c", b"d" * 20]


def settings(**given: object) -> MetricsConfig | None:
    defaults: dict[str, object] = {"legacy_names_on": "True", "statsd_datadog_metrics_tags": "True", "statsd_prefix": "airflow"}
    return read_config((defaults | given).get, {})


def test_metrics_are_off_by_default() -> None:
    assert settings() is None
    assert settings(statsd_on="False", statsd_datadog_enabled=False) is None


def test_settings_are_texts_or_values() -> None:
    text = settings(statsd_on="True", statsd_port="9125", statsd_influxdb_enabled="true", statsd_disabled_tags="run_id")
    typed = settings(statsd_on=True, statsd_port=9125, statsd_influxdb_enabled=True, statsd_disabled_tags="run_id")
    assert text == typed == MetricsConfig("localhost", 9125, tag_style="influxdb", disabled_tags="run_id")


def test_datadog_wins_over_statsd() -> None:
    both = settings(statsd_on=True, statsd_influxdb_enabled=True, statsd_datadog_enabled=True, statsd_datadog_tags="a:b, c:d")
    assert both is not None
    assert (both.tag_style, both.constant_tags) == ("datadog", ("a:b", "c:d"))
    assert both.disabled_tags == ""
    without = settings(statsd_datadog_enabled=True, statsd_datadog_metrics_tags=False)
    assert without is not None
    assert lines(FINISH, without._replace(legacy_names=False)) == ["airflow.ti.finish:1|c"]


def test_each_row_of_the_table_is_complete() -> None:
    rows = metrics()
    assert len({one.name for one in rows}) == len(rows)
    for one in rows:
        assert one.kind in ("counter", "gauge", "timer"), one.name
        assert one.text.endswith("."), one.name


def test_the_page_of_metrics_is_up_to_date() -> None:
    """After a change of the table of metrics: make docs."""
    docs = Path(__file__).parents[3] / "docs"
    generated = runpy.run_path(str(docs / "generate_metrics.py"))["page"]()
    assert (docs / "reference" / "metrics.md").read_text(encoding="utf-8") == generated
