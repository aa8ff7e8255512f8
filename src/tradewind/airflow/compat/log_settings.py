"""`airflow.config_templates.airflow_local_settings` and colored log lines: the names that a file `log_config.py` copies and
changes. In Tradewind the settings of the section `logging` configure the logs of tasks; a changed copy has no effect.
"""

from __future__ import annotations

import logging
from typing import Any

__all__ = [
    "BASE_LOG_FOLDER",
    "DEFAULT_LOGGING_CONFIG",
    "LOG_FORMAT",
    "LOG_LEVEL",
    "REMOTE_LOGGING",
    "CustomTTYColoredFormatter",
]

LOG_LEVEL = "INFO"
LOG_FORMAT = "[%(asctime)s] {%(filename)s:%(lineno)d} %(levelname)s - %(message)s"
BASE_LOG_FOLDER = "logs"
REMOTE_LOGGING = False


class CustomTTYColoredFormatter(logging.Formatter):
    """A formatter of log lines. It adds no colors."""

    def __init__(self, *args: Any, stream: Any = None, **_kwargs: Any) -> None:
        del stream
        super().__init__(*args[:2])


DEFAULT_LOGGING_CONFIG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"mask_secrets": {"()": "airflow.utils.log.secrets_masker.SecretsMasker"}},
    "formatters": {
        "airflow": {"format": LOG_FORMAT},
        "airflow_coloured": {"format": LOG_FORMAT},
        "source_processor": {"format": LOG_FORMAT},
    },
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": "airflow"},
        "task": {
            "class": "airflow.utils.log.file_task_handler.FileTaskHandler",
            "base_log_folder": BASE_LOG_FOLDER,
            "formatter": "airflow",
        },
        "processor": {"class": "logging.StreamHandler", "formatter": "airflow"},
    },
    "loggers": {
        "airflow.processor": {"handlers": ["processor"], "level": LOG_LEVEL, "propagate": False},
        "airflow.task": {"handlers": ["task"], "level": LOG_LEVEL, "propagate": True},
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
}
