"""What tests of message queues share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from airflow.exceptions import AirflowProviderDeprecationWarning


@pytest.fixture
def collect_queue_param_deprecation_warning() -> Iterator[None]:
    """The argument `queue` of `MessageQueueTrigger` warns."""
    with pytest.warns(AirflowProviderDeprecationWarning, match="The `queue` parameter is deprecated"):
        yield


def mark_common_msg_queue_test(test: object) -> object:
    """Message queues need Airflow 3.0.1; here is a later one."""
    return test
