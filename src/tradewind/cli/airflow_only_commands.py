"""Commands of Airflow's that have no counterpart here: each says in a sentence what there is instead."""

from __future__ import annotations

import click

from tradewind.model.errors import NotYetSupported

SENTENCES = {
    "triggerer": "nothing has to be started: the worker host starts a triggerer when a task waits for a trigger, and ends it",
    "kerberos": "tickets are not renewed here; run k5start beside it (tasks see its ticket cache by KRB5CCNAME)",
    "celery": "the Celery executor is not built yet: tasks run on this machine (tradewind worker-host, or tradewind standalone)",
    "kubernetes": "the Kubernetes executor is not built yet: tasks run on this machine",
    "partitions": "partitions of assets are not built yet",
    "teams": "one installation serves one team; give each its own TRADEWIND_HOME",
    "state-store": "there is no state store; tasks keep small values as XComs and variables",
    "db-manager": "there is one database with one schema: tradewind db migrate|check|reset",
    "sync-perm": "roles are fixed here, so there is nothing to synchronise; see: tradewind roles list",
    "internal-api": "tasks speak to the worker host, which needs no server of its own",
}
"""Names of commands and groups → what to do instead."""


def absent(name: str) -> click.Command:
    """A command that says why it is not there."""

    @click.command(name, hidden=True, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def refuse(words: tuple[str, ...]) -> None:
        raise NotYetSupported(SENTENCES[name])

    refuse.help = f"Not here: {SENTENCES[name]}."
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
"""Commands of Airflow 1 and 2 under names that nothing here has → what they are now."""
