"""`tradewind workers token`."""

from __future__ import annotations

from tests.unit.cli.conftest import Run


def test_a_token_is_not_made_for_the_name_of_a_pod(run: Run) -> None:
    """Such a worker would get nothing but the attempt of this name."""
    assert run("workers", "token", "etl-1").stdout.startswith("tww1.")
    refused = run("workers", "token", "pod-7-0-2")
    assert refused.exit_code != 0
    assert "pods of the KubernetesExecutor" in refused.stderr
