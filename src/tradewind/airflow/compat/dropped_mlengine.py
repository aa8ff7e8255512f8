"""`create_evaluate_ops` of the provider package of Google: the tasks that evaluate a model of ML Engine, a service that has ended.

The DAG loads and shows its graph; the tasks fail with a message (see `dropped_operators`).
"""

from __future__ import annotations

import re
from typing import Any

from tradewind.airflow.compat.dropped_operators import DroppedOperator
from tradewind.sdk import open_dags
from tradewind.sdk.exceptions import AirflowException

__all__ = ["create_evaluate_ops"]


class MLEngineStartBatchPredictionJobOperator(DroppedOperator):
    """The dropped operator that made predictions with a model of ML Engine."""


class BeamRunPythonPipelineOperator(DroppedOperator):
    """The dropped operator that summarized the predictions."""


class EvaluationOperator(DroppedOperator):
    """The dropped operator that called the author's function with the summary."""


def create_evaluate_ops(
    task_prefix: str,
    data_format: str,
    input_paths: Any,
    prediction_path: str,
    metric_fn_and_keys: Any,
    validate_fn: Any,
    *_positional: Any,
    dag: Any = None,
    **_more: Any,
) -> tuple[DroppedOperator, DroppedOperator, DroppedOperator]:
    """Create three tasks, one after the other: `PREFIX-prediction`, `PREFIX-summary`, `PREFIX-validation`.

    Args:
        task_prefix: start of the ids of the tasks.
        dag: default is the DAG of the innermost open block.

    Raises:
        AirflowException: the prefix has a character that task ids do not have, or `metric_fn_and_keys` is no function with keys.
    """
    if not re.match(r"^[a-zA-Z][-A-Za-z0-9]*$", task_prefix):
        raise AirflowException(
            f"task_prefix is {task_prefix!r}; it must begin with a letter and have only letters, digits and dashes"
        )
    function, *keys = metric_fn_and_keys
    if not callable(function) or len(keys) != 1:
        raise AirflowException("metric_fn_and_keys must be a function and the keys of its result")
    if not callable(validate_fn):
        raise AirflowException("validate_fn must be a function")
    owner = dag if dag is not None else open_dags.current_dag()
    prediction = MLEngineStartBatchPredictionJobOperator(
        task_id=f"{task_prefix}-prediction",
        data_format=data_format,
        input_paths=input_paths,
        output_path=prediction_path,
        dag=owner,
    )
    summary = BeamRunPythonPipelineOperator(task_id=f"{task_prefix}-summary", dag=owner)
    validation = EvaluationOperator(task_id=f"{task_prefix}-validation", dag=owner)
    prediction >> summary >> validation
    return prediction, summary, validation
