"""Small functions and constants of several modules of `airflow.utils` that only provider packages use."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.mime.application import MIMEApplication
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urljoin, urlsplit

from tradewind.airflow.compat.email import get_email_address_list
from tradewind.sdk.assets import BaseAsset
from tradewind.sdk.conf import conf

__all__ = [
    "RESOURCE_ASSET",
    "RESOURCE_ASSET_ALIAS",
    "RESOURCE_BACKFILL",
    "RESOURCE_DAG_VERSION",
    "RESOURCE_DATASET",
    "WEB_COLORS",
    "AirflowContextDeprecationWarning",
    "BaseDatasetEventInput",
    "DatasetLineageInfo",
    "LineageContext",
    "PodDefaults",
    "build_airflow_dagrun_url",
    "build_airflow_url_with_query",
    "build_mime_message",
    "context_copy_partial",
    "correct_maybe_zipped",
    "get_airflow_git_version",
    "get_unique_dag_module_name",
    "remove_task_decorator",
]

BaseDatasetEventInput = BaseAsset
LineageContext = Any
WEB_COLORS = {"LIGHTBLUE": "#4d9de0", "LIGHTORANGE": "#FF9933"}
_SERIALIZERS = ("pickle", "cloudpickle", "dill")

RESOURCE_ASSET = "Assets"
RESOURCE_ASSET_ALIAS = "Asset Aliases"
RESOURCE_BACKFILL = "Backfills"
RESOURCE_DAG_VERSION = "DAG Versions"
RESOURCE_DATASET = "Datasets"

_ZIPPED = re.compile(rf"(.*\.zip)?{re.escape(os.sep)}?(.*)")


class AirflowContextDeprecationWarning(DeprecationWarning):
    """An old name of a context variable is used."""


@dataclass
class DatasetLineageInfo:
    """How often a hook has read or written a dataset."""

    dataset: Any
    count: int
    context: Any


class PodDefaults:
    """The sidecar container in the pod of a task, which returns the XCom. The names are those of Airflow 1."""

    XCOM_MOUNT_PATH = "/airflow/xcom"
    SIDECAR_CONTAINER_NAME = "airflow-xcom-sidecar"
    XCOM_CMD = 'trap "exit 0" INT; while true; do sleep 1; done;'


def _base_url() -> str:
    return str(conf.get("api", "base_url", fallback=None) or conf.get("webserver", "base_url", fallback="/"))


def build_airflow_dagrun_url(dag_id: str, run_id: str) -> str:
    """The address of a run's page."""
    return urljoin(_base_url(), f"dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe='')}")


def build_airflow_url_with_query(query: dict[str, Any]) -> str:
    """The address of a DAG's page with a query, as in Airflow 2."""
    return urljoin(_base_url(), f"dags/{quote(str(query.get('dag_id', '')), safe='')}/grid?{urlencode(query)}")


def build_mime_message(
    mail_from: str | None,
    to: str | list[str],
    subject: str,
    html_content: str,
    files: list[str] | None = None,
    cc: str | list[str] | None = None,
    bcc: str | list[str] | None = None,
    mime_subtype: str = "mixed",
    mime_charset: str = "utf-8",
    custom_headers: Mapping[str, Any] | None = None,
) -> tuple[MIMEMultipart, list[str]]:
    """(the message, all recipients)."""
    message = MIMEMultipart(mime_subtype)
    message["Subject"] = subject
    if mail_from:
        message["From"] = mail_from
    receivers = get_email_address_list(to)
    message["To"] = ", ".join(receivers)
    if cc:
        copied = get_email_address_list(cc)
        message["CC"] = ", ".join(copied)
        receivers = receivers + copied
    if bcc:
        receivers = receivers + get_email_address_list(bcc)
    message["Date"] = formatdate(localtime=True)
    message.attach(MIMEText(html_content, "html", mime_charset))
    for name in files or ():
        path = Path(name)
        part = MIMEApplication(path.read_bytes(), Name=path.name)
        part["Content-Disposition"] = f'attachment; filename="{path.name}"'
        part["Content-ID"] = f"<{path.name}>"
        message.attach(part)
    for header, value in (custom_headers or {}).items():
        message[header] = value
    return message, receivers


def context_copy_partial(source: Any, keys: Any) -> dict[str, Any]:
    """Some entries of a context."""
    return {key: source[key] for key in keys if key in source}


def correct_maybe_zipped(fileloc: str | os.PathLike[str] | None) -> Any:
    """The path of the zip file that contains the path; other paths unchanged."""
    if not fileloc:
        return fileloc
    found = _ZIPPED.search(str(fileloc))
    archive = found.group(1) if found is not None else None
    return archive if archive and zipfile.is_zipfile(archive) else fileloc


def get_unique_dag_module_name(file_path: str) -> str:
    """The name of a DAG file's module, as in Airflow 3."""
    digest = hashlib.sha1(str(file_path).encode(), usedforsecurity=False).hexdigest()
    return f"unusual_prefix_{digest}_{re.sub(r'[^a-zA-Z0-9_]', '_', Path(file_path).stem)}"


def get_airflow_git_version() -> str | None:
    """Return None: there is no commit of Airflow."""
    return None


def remove_task_decorator(python_source: str, task_decorator_name: str) -> str:
    """The source of a function without its task decorators."""
    source = python_source
    for name in (task_decorator_name, "@setup", "@teardown"):
        source = _without(source, name)
    return source


def _without(source: str, decorator: str) -> str:
    before, found, after = source.partition(decorator)
    if not found or (before.strip() and not before.endswith(("\n", " "))):
        return source
    if not after.startswith("("):
        return before + after.lstrip("\n") if after[:1].isspace() else source
    depth = 0
    for place, letter in enumerate(after):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return before + after[place + 1 :].lstrip("\n")
    return source


def _get_normalized_scheme(uri: str) -> str:
    return urlsplit(uri).scheme.lower()


@contextlib.contextmanager
def _airflow_parsing_context_manager(dag_id: str | None = None, task_id: str | None = None) -> Iterator[None]:
    """Do nothing: in Airflow a file can be read for one DAG or task; here it is read for all."""
    yield
