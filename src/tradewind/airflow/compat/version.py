"""`airflow.version`."""

from tradewind.airflow.names import VERSION

__version__ = version = VERSION

__all__ = ["version"]
