"""The DAG file of a warm-up: imported in the warm image, as a user's file would be, and thrown away."""

from tradewind import DAG, Param, task
from tradewind.operators.python import PythonOperator


def nothing(day: str | None = None) -> None:
    """Does nothing."""


@task
def give(ds: str, params: dict[str, object]) -> list[object]:
    """Looks at its context, and returns something."""
    return [ds, len(params)]


@task
def take(given: list[object]) -> None:
    """Is given what another task returned."""


with DAG("warm_up", schedule="@daily", catchup=False, params={"text": Param("")}):
    PythonOperator(task_id="plain", python_callable=nothing) >> PythonOperator(
        task_id="templated", python_callable=nothing, op_kwargs={"day": "{{ ds | upper }}"}
    )
    take(give())
