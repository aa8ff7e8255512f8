"""Messages of the broker: only what this deployment has signed is an attempt."""

from __future__ import annotations

import json

import pytest

from tradewind.executors.celery_publisher import is_redis, make_message, redis_document
from tradewind.wire.celery_messages import EnvelopeRefused, seal, task_id, unseal
from tradewind.wire.messages import Workload

KEY = b"k" * 32
WORK = Workload(7, 3, 2, "etl", "load", "r1", map_index=4, conf={"a": 1}, queue="far")


def test_an_envelope_holds_the_workload() -> None:
    assert unseal(seal(WORK, KEY), KEY) == WORK


def test_an_envelope_of_another_key_is_refused() -> None:
    with pytest.raises(EnvelopeRefused, match="another key"):
        unseal(seal(WORK, b"o" * 32), KEY)


def test_a_changed_workload_is_refused() -> None:
    prefix, _, signature = seal(WORK, KEY).split(".")
    _, document, _ = seal(Workload(7, 3, 2, "etl", "drop_all", "r1"), KEY).split(".")
    with pytest.raises(EnvelopeRefused, match="another key"):
        unseal(f"{prefix}.{document}.{signature}", KEY)


@pytest.mark.parametrize("text", ["", "twa1", "twa1.abc", "eyJ0eXAi.abc.def"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(EnvelopeRefused, match="not an attempt"):
        unseal(text, KEY)


def test_the_message_is_one_of_celery() -> None:
    """kombu reads it from Redis, and Celery finds the task and its arguments."""
    kombu = pytest.importorskip("kombu", reason="Celery is not installed: pip install 'tradewind[celery]'")
    stored = json.loads(redis_document("far", *make_message(WORK, KEY, "1@host")))
    channel = kombu.Connection("memory://").channel()
    message = channel.message_to_python(stored)
    (envelope,), keywords, _ = message.decode()
    assert unseal(envelope, KEY) == WORK
    assert keywords == {}
    assert message.headers["task"] == "tradewind.attempt"
    assert message.headers["id"] == message.properties["correlation_id"] == task_id(WORK.key) == "tradewind-7-3-2"
    assert message.headers["shadow"] == "etl.load[4]"


def test_only_single_redis_servers_get_lists() -> None:
    assert is_redis("redis://localhost:6379/0")
    assert is_redis("redis+socket:///run/redis.sock")
    assert not is_redis("sentinel://localhost:26379")
    assert not is_redis("amqp://localhost//")
