"""The environment of code that is not ours: everything but Tradewind's own credentials.

Variables and connections that somebody put there for DAG files (`AIRFLOW_VAR_…`, `AIRFLOW_CONN_…`, a cloud's keys) stay: they
are meant for user code. What opens our database, signs our tokens or decrypts stored passwords does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_OWN = re.compile(r"(TRADEWIND|AIRFLOW)__")
_SECRET = re.compile(
    r"__(SECRETS|DATABASE)__|FERNET|SECRET|PASSWORD|TOKEN|JWT|SQL_ALCHEMY|BROKER_URL|RESULT_BACKEND|CREDENTIAL|PRIVATE|_CMD$"
)


def without_credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """A copy without our own secrets."""
    return {name: value for name, value in environment.items() if not (_OWN.match(name) and _SECRET.search(name))}
