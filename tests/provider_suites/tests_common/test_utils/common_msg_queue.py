"""Helpers of the tests of message queues."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from airflow.exceptions import AirflowProviderDeprecationWarning


@pytest.fixture
def collect_queue_param_deprecation_warning() -> Iterator[None]:
    """Expect the deprecation warning for the argument `queue` of `MessageQueueTrigger`."""
    with pytest.warns(AirflowProviderDeprecationWarning, match="The `queue` parameter is deprecated"):
        yield


def mark_common_msg_queue_test(test: object) -> object:
    """Return the test unchanged: message queues need Airflow 3.0.1, and the release here is later."""
    return test
