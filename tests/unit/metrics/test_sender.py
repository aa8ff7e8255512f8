"""Sending lines without blocking and without errors."""

from __future__ import annotations

import logging
import socket
import threading

import pytest

from tests.statsd_server import StatsdServer
from tradewind.metrics.config import MetricsConfig
from tradewind.metrics.measurement import Measurement
from tradewind.metrics.meter import Meter
from tradewind.metrics.sender import LINES_MAX, REPORT_SECONDS, Address, Sender, resolve, sender_for
from tradewind.model.errors import ConfigError


def test_lines_arrive() -> None:
    with StatsdServer() as server:
        meter = Meter(MetricsConfig("127.0.0.1", server.port, legacy_names=False))
        meter.send("count", "ti.start", 1)
        meter.add([Measurement("gauge", "pool.open_slots", 4), Measurement("timing", "task.duration", 1)])
        meter.close()
        server.wait_for("airflow.ti.start:1|c", "airflow.pool.open_slots:4|g", "airflow.task.duration:1.000000|ms")


def test_the_name_of_a_host_is_found_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow_name_server(host: str, port: int, ipv6: bool, numeric: bool = False) -> Address:
        if numeric:
            raise socket.gaierror("it is a name")
        assert asked.wait(10)
        return resolve("127.0.0.1", port, ipv6)

    asked = threading.Event()
    monkeypatch.setattr("tradewind.metrics.sender.resolve", slow_name_server)
    with StatsdServer() as server:
        sender = sender_for("statsd.example.com", server.port, ipv6=False)
        sender.add([b"n:1|c"])
        sender.flush()
        asked.set()
        assert sender.resolver is not None
        sender.resolver.join(10)
        sender.close()
        server.wait_for("n:1|c")


def test_lines_wait_for_the_address_up_to_a_limit() -> None:
    sender = Sender(None)
    sender.add([b"n:1|c"] * (LINES_MAX + 7))
    sender.flush()
    assert sender.dropped == 0, "the drop was logged"
    with StatsdServer() as server:
        sender.address = resolve("127.0.0.1", server.port, ipv6=False)
        sender.flush()
        server.wait(lambda lines: len(lines) > 100, "the arrival of lines")
        sender.close()


def test_what_cannot_be_sent_is_counted_and_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = 1000.0
    sender = Sender((socket.AF_INET, ("127.0.0.1", 0)), clock=lambda: now)  # nobody can send to port 0
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            sender.add([b"n:1|c", b"m:1|c"])
            sender.flush()
        assert sender.dropped == 4
        assert len(caplog.records) == 1
        now += REPORT_SECONDS
        sender.flush()
    assert [record.__dict__["values"] for record in caplog.records] == [{"lines": 2}, {"lines": 4}]


def test_an_unknown_host_does_not_stop_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object, **_options: object) -> object:
        raise socket.gaierror("no such host")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    sender = sender_for("no.such.host", 8125, ipv6=False)
    sender.add([b"n:1|c"])
    sender.flush()
    assert sender.address is None


def test_a_wrong_pattern_is_a_mistake_in_the_settings() -> None:
    with pytest.raises(ConfigError, match=r"metrics_allow_list.*'\(ti'"):
        Meter(MetricsConfig("127.0.0.1", 8125, allow="(ti"))


def test_an_invalid_name_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    meter = Meter(MetricsConfig("127.0.0.1", 9), Sender(None))
    with caplog.at_level(logging.WARNING):
        meter.send("count", "two words", 1)
        meter.send("count", "two words", 1)
    assert len(caplog.records) == 1
