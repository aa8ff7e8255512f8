"""Commands of Airflow that Tradewind does not have. Each prints what to use instead."""

from __future__ import annotations

import click

from tradewind.model.errors import NotYetSupported

SENTENCES = {
    "triggerer": "no service has to be started: the worker host starts and stops the triggerer when tasks wait for triggers",
    "kerberos": "Tradewind does not renew Kerberos tickets; run k5start beside it (tasks find the ticket cache through KRB5CCNAME)",
    "celery": "the Celery executor is not supported yet: tasks run on this machine (tradewind worker-host or standalone)",
    "kubernetes": "the Kubernetes executor is not supported yet: tasks run on this machine",
    "partitions": "asset partitions are not supported yet",
    "teams": "one installation serves one team; give each team its own TRADEWIND_HOME",
    "state-store": "there is no state store; keep small values in XComs and variables",
    "db-manager": "there is one database with one schema: tradewind db migrate|check|reset",
    "sync-perm": "the roles are fixed, so there is nothing to synchronise; see: tradewind roles list",
    "internal-api": "tasks communicate with the worker host, which needs no extra server",
}
"""Command or group of Airflow → what to use instead."""


def absent(name: str) -> click.Command:
    """Make a command that fails with the sentence about the alternative."""

    @click.command(name, hidden=True, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def refuse(words: tuple[str, ...]) -> None:
        raise NotYetSupported(SENTENCES[name])

    refuse.help = f"Not available: {SENTENCES[name]}."
    return refuse


OLD_NAMES = {
    "initdb": "db migrate",
    "upgradedb": "db migrate",
    "resetdb": "db reset",
    "checkdb": "db check",
    "shell": "db shell",
    "list_dags": "dags list",
    "list_dag_runs": "dags list-runs",
    "trigger_dag": "dags trigger",
    "dag_state": "dags state",
    "show_dag": "dags show",
    "delete_dag": "dags delete",
    "next_execution": "dags next-execution",
    "pause": "dags pause",
    "unpause": "dags unpause",
    "list_tasks": "tasks list",
    "task_state": "tasks state",
    "task_failed_deps": "tasks failed-deps",
    "clear": "tasks clear",
    "test": "tasks test",
    "render": "tasks render",
    "run": "tasks run",
    "pool": "pools",
    "xcoms": "xcom",
    "webserver": "api-server",
    "worker": "worker-host",
    "rotate_fernet_key": "rotate-fernet-key",
    "list_users": "users list",
    "create_user": "users create",
    "delete_user": "users delete",
}
"""Commands of Airflow 1 and 2 whose names no longer exist → their present names."""
