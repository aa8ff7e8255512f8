"""The environment for user code: everything except Tradewind's own credentials.

Variables and connections for DAG files (`AIRFLOW_VAR_…`, `AIRFLOW_CONN_…`, keys of a cloud provider) are kept, because they are
meant for user code. Values that open Tradewind's database, sign its tokens or decrypt stored passwords are removed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_BACKEND = re.compile(r"AIRFLOW__(SECRETS__BACKEND|WORKERS__SECRETS_BACKEND)(_KWARGS)?$")
"""The secrets backend is asked by user code."""
_OWN = re.compile(r"(TRADEWIND|AIRFLOW)__")
_SECRET = re.compile(
    r"__(SECRETS|DATABASE)__|FERNET|SECRET|PASSWORD|TOKEN|JWT|SQL_ALCHEMY|BROKER_URL|RESULT_BACKEND|CREDENTIAL|PRIVATE|_CMD$"
)


def without_credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """A copy without Tradewind's own secrets."""
    return {name: value for name, value in environment.items() if _BACKEND.match(name) or not _is_own_secret(name)}


def _is_own_secret(name: str) -> bool:
    return bool(_OWN.match(name) and _SECRET.search(name))
