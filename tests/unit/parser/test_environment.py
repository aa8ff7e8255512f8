from __future__ import annotations

from tradewind.parser.environment import without_credentials


def test_own_secrets_are_removed_and_values_of_users_are_kept() -> None:
    secret = {
        "TRADEWIND__SECRETS__FERNET_KEY",
        "TRADEWIND__DATABASE__PATH",
        "AIRFLOW__CORE__FERNET_KEY",
        "AIRFLOW__CORE__FERNET_KEY_CMD",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
        "AIRFLOW__CORE__SQL_ALCHEMY_CONN",
        "AIRFLOW__CELERY__BROKER_URL",
        "AIRFLOW__CELERY__RESULT_BACKEND",
        "AIRFLOW__API_AUTH__JWT_SECRET",
        "AIRFLOW__WEBSERVER__SECRET_KEY",
    }
    plain = {
        "PATH",
        "AIRFLOW_VAR_TOKEN",
        "AIRFLOW_CONN_DB",
        "AWS_SECRET_ACCESS_KEY",
        "TRADEWIND__CORE__PARALLELISM",
        "TRADEWIND_HOME",
        "MY_PASSWORD",
    }
    assert set(without_credentials(dict.fromkeys(secret | plain, "x"))) == plain
