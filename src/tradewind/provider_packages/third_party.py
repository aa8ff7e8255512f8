"""Python package → distribution of the package registry that contains it, for the hint of an import error."""

from __future__ import annotations

_DISTRIBUTIONS = {
    "bs4": "beautifulsoup4",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "PyMuPDF",
    "git": "GitPython",
    "github": "PyGithub",
    "google.cloud.bigquery": "google-cloud-bigquery",
    "google.cloud.secretmanager": "google-cloud-secret-manager",
    "google.cloud.storage": "google-cloud-storage",
    "google.oauth2": "google-auth",
    "googleapiclient": "google-api-python-client",
    "great_expectations": "great-expectations",
    "jwt": "PyJWT",
    "kafka": "kafka-python",
    "ldap": "python-ldap",
    "mysql.connector": "mysql-connector-python",
    "MySQLdb": "mysqlclient",
    "PIL": "Pillow",
    "psycopg2": "psycopg2-binary",
    "pydantic_settings": "pydantic-settings",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slack_sdk": "slack-sdk",
    "snowflake.connector": "snowflake-connector-python",
    "telegram": "python-telegram-bot",
    "upath": "universal-pathlib",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
}
"""Name of the package → name of the distribution, if they differ."""

_SAME_NAME = frozenset(
    (
        *("boto3", "botocore", "clickhouse_driver", "croniter", "dill", "docker", "duckdb", "elasticsearch", "fastparquet"),
        *("flask", "fsspec", "geopandas", "gspread", "httpx", "jinja2", "joblib", "kubernetes", "lxml", "matplotlib"),
        *("mlflow", "numpy", "openai", "openpyxl", "pandas", "paramiko", "pendulum", "polars", "psycopg", "pyarrow"),
        *("pymongo", "pymssql", "pymysql", "pyodbc", "pysftp", "pyspark", "pytest", "pytz", "redis", "regex", "requests"),
        *("s3fs", "scipy", "seaborn", "selenium", "simplejson", "six", "spacy", "sqlalchemy", "statsmodels", "tabulate"),
        *("tenacity", "tensorflow", "toml", "torch", "tqdm", "transformers", "tweepy", "tzlocal", "xgboost", "xlrd"),
        *("yfinance"),
    )
)
"""Packages whose distribution has the same name."""


def advice(module: str) -> str:
    """A sentence that says how to install a module that was not found. Empty for modules of Airflow and of Tradewind.

    Args:
        module: dotted name, as in `ModuleNotFoundError.name`.
    """
    parts = module.split(".")
    if parts[0] in ("airflow", "tradewind") or not module:
        return ""
    prefixes = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    known = next((_DISTRIBUTIONS[name] for name in prefixes if name in _DISTRIBUTIONS), None)
    if known is None and parts[0] in _SAME_NAME:
        known = parts[0].replace("_", "-")
    if known is not None:
        return f"Install it in the environment of Tradewind: pip install {known}"
    return (
        f"If {parts[0]!r} is a package of the registry, install it in the environment of Tradewind with pip; if it is your own "
        "module, put it into the DAG folder or the plugins folder (`tradewind info` shows both)"
    )
