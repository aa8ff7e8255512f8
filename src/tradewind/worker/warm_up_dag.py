"""The DAG file of a warm-up: imported in an image like a file of a user, and removed again."""

from tradewind import DAG, Param, task
from tradewind.operators.python import PythonOperator


def nothing(day: str | None = None) -> None:
    """Does nothing."""


@task
def give(ds: str, params: dict[str, object]) -> list[object]:
    """Reads its context and returns a value."""
    return [ds, len(params)]


@task
def take(given: list[object]) -> None:
    """Takes the value of another task."""


with DAG("warm_up", schedule="@daily", catchup=False, params={"text": Param("")}):
    PythonOperator(task_id="plain", python_callable=nothing) >> PythonOperator(
        task_id="templated", python_callable=nothing, op_kwargs={"day": "{{ ds | upper }}"}
    )
    take(give())
