"""How a Celery worker acknowledges messages whose connection has broken."""

from __future__ import annotations

import logging
from typing import Any

import pytest

pytest.importorskip("celery", reason="tests of the CeleryExecutor need celery: pip install 'tradewind[celery]'")

from kombu.message import Message

from tradewind.wire.celery_messages import TASK_NAME
from tradewind.worker.celery_pool import AttemptRequest, make_app


class _HalfClosedChannel:
    """What kombu leaves of a channel whose connection has broken."""

    no_ack_consumers: frozenset[str] = frozenset()
    connection: Any = None

    def __init__(self) -> None:
        self.calls = 0

    def basic_ack(self, tag: str, multiple: bool = False) -> None:
        self.calls += 1
        self.connection.client.ack(tag)  # AttributeError

    def basic_reject(self, tag: str, requeue: bool = False) -> None:
        self.basic_ack(tag)


def request(broker: str, channel: _HalfClosedChannel) -> AttemptRequest:
    app = make_app(broker, ["default"])
    message = Message(b"", channel=channel, delivery_tag="1", delivery_info={"consumer_tag": "a"})
    message.headers = {"id": "one", "task": TASK_NAME}
    made = AttemptRequest(
        message,
        on_ack=message.ack_log_error,
        on_reject=message.reject_log_error,
        connection_errors=(OSError,),
        app=app,
        task=app.tasks[TASK_NAME],
        body=([], {}, {}),
        decoded=True,
    )
    made._eventer = None
    return made


@pytest.mark.parametrize("action", ["acknowledge", "reject"])
def test_a_lost_connection_does_not_end_the_worker(action: str, caplog: pytest.LogCaptureFixture) -> None:
    """An error here would leave Celery's loop, and the worker would end with all its tasks."""
    channel = _HalfClosedChannel()
    with caplog.at_level(logging.CRITICAL):
        getattr(request("amqp://nowhere", channel), action)()
    assert channel.calls == 1
    assert "Couldn't" in caplog.text


@pytest.mark.parametrize("action", ["acknowledge", "reject"])
def test_nothing_is_acknowledged_to_redis(action: str, caplog: pytest.LogCaptureFixture) -> None:
    """Redis has forgotten the message when the worker took it."""
    channel = _HalfClosedChannel()
    with caplog.at_level(logging.CRITICAL):
        getattr(request("redis://nowhere", channel), action)()
    assert channel.calls == 0
    assert caplog.text == ""
