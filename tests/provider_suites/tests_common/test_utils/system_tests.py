"""System tests need other systems; their files can be imported."""

from __future__ import annotations

from typing import Any


def get_test_run(dag: Any, **_kwargs: Any) -> Any:
    """The function that pytest would collect for an example DAG."""

    def test_run() -> None:
        dag.test()

    return test_run


def get_test_env_id(env_var_name: str = "SYSTEM_TESTS_ENV_ID") -> str:
    import os

    return os.environ.get(env_var_name, "")
