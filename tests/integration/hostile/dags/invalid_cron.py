"""A DAG with an invalid schedule."""

from tradewind import DAG
from tradewind.operators.empty import EmptyOperator

with DAG("invalid_cron", schedule="61 * * * *"):
    EmptyOperator(task_id="t")
