"""Python package → distribution of the package registry that contains it, for the hint of an import error."""

from __future__ import annotations

_FOR_AIRFLOW = {
    "ai.starlake": "starlake-airflow",
    "airflow_ai_sdk": "airflow-ai-sdk",
    "airflow_clickhouse_plugin": "airflow-clickhouse-plugin",
    "airflow_dbt": "airflow-dbt",
    "airflow_dbt_python": "airflow-dbt-python",
    "airflow_mcd": "airflow-mcd",
    "airflow_powerbi_plugin": "airflow-powerbi-plugin",
    "airflow_provider_census": "airflow-provider-census",
    "airflow_provider_hightouch": "airflow-provider-hightouch",
    "airflow_providers_wherobots": "airflow-providers-wherobots",
    "astro": "astro-sdk-python",
    "astronomer.providers": "astronomer-providers",
    "cosmos": "astronomer-cosmos",
    "dagfactory": "dag-factory",
    "datahub_airflow_plugin": "acryl-datahub-airflow-plugin",
    "duckdb_provider": "airflow-provider-duckdb",
    "fivetran_provider": "airflow-provider-fivetran",
    "fivetran_provider_async": "airflow-provider-fivetran-async",
    "great_expectations_provider": "airflow-provider-great-expectations",
    "gusty": "gusty",
    "mlflow_provider": "airflow-provider-mlflow",
    "openlineage.airflow": "openlineage-airflow",
    "ray_provider": "astro-provider-ray",
    "rudder_airflow_provider": "rudderstack-airflow-provider",
}
"""The same for packages that require `apache-airflow`: pip alone would install Airflow itself with them."""

_DISTRIBUTIONS = {
    "airflow_client": "apache-airflow-client",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cassandra": "cassandra-driver",
    "confluent_kafka": "confluent-kafka",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dbt": "dbt-core",
    "deprecated": "Deprecated",
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
    "opensearchpy": "opensearch-py",
    "PIL": "Pillow",
    "psycopg2": "psycopg2-binary",
    "pydantic_settings": "pydantic-settings",
    "qdrant_client": "qdrant-client",
    "scrapy": "Scrapy",
    "sentence_transformers": "sentence-transformers",
    "serial": "pyserial",
    "simple_salesforce": "simple-salesforce",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slack_sdk": "slack-sdk",
    "snowflake.connector": "snowflake-connector-python",
    "snowflake.snowpark": "snowflake-snowpark-python",
    "telegram": "python-telegram-bot",
    "unidecode": "Unidecode",
    "upath": "universal-pathlib",
    "weaviate": "weaviate-client",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
}
"""Name of the package → name of the distribution, if they differ."""

_SAME_NAME = frozenset(
    (
        *("aiohttp", "anthropic", "asgiref", "attrs", "boto3", "botocore", "ccxt", "chromadb", "clickhouse_driver"),
        *("croniter", "deltalake", "dill", "docker", "duckdb", "elasticsearch", "fastavro", "fastparquet"),
        *("feedparser", "flask", "freezegun", "fsspec", "geopandas", "geopy", "gspread", "holidays", "html5lib"),
        *("httpx", "hvac", "isodate", "jinja2", "joblib", "kaggle", "kubernetes", "lightgbm", "lxml", "matplotlib"),
        *("minio", "mlflow", "neo4j", "nltk", "numpy", "openai", "openpyxl", "optuna", "packaging", "pandas"),
        *("paramiko", "pendulum", "plotly", "polars", "praw", "prophet", "psycopg", "pyarrow", "pycountry"),
        *("pydantic", "pyiceberg", "pymongo", "pymssql", "pymysql", "pyodbc", "pysftp", "pyspark", "pytest", "pytz"),
        *("redis", "regex", "requests", "s3fs", "scipy", "seaborn", "selenium", "simplejson", "six", "spacy"),
        *("sqlalchemy", "sqlmesh", "statsmodels", "streamlit", "tabulate", "tenacity", "tensorflow", "tiktoken"),
        *("toml", "torch", "tqdm", "transformers", "trino", "tweepy", "tzlocal", "wandb", "xgboost", "xlrd"),
        *("yfinance",),
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
    needs_airflow = next((_FOR_AIRFLOW[name] for name in prefixes if name in _FOR_AIRFLOW), None)
    if needs_airflow is not None:
        return (
            f"Install it in the environment of Tradewind, without Airflow: write {needs_airflow} into a file requirements.txt, "
            "then: tradewind providers install -r requirements.txt"
        )
    known = next((_DISTRIBUTIONS[name] for name in prefixes if name in _DISTRIBUTIONS), None)
    if known is None and parts[0] in _SAME_NAME:
        known = parts[0].replace("_", "-")
    if known is not None:
        return f"Install it in the environment of Tradewind: pip install {known}"
    return (
        f"If {parts[0]!r} is a package of the registry, install it in the environment of Tradewind with pip; if it is your own "
        "module, put it into the DAG folder, beside it (such as include/), or into the plugins folder (`tradewind info` shows them)"
    )
