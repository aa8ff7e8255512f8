"""`airflow.api_fastapi`: models of the API and of auth managers that provider packages import."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel as PydanticModel
from pydantic import ConfigDict

__all__ = [
    "AccessView",
    "AirflowRouter",
    "AssetAliasDetails",
    "AssetDetails",
    "BackfillDetails",
    "BaseModel",
    "ConfigurationDetails",
    "ConnectionDetails",
    "DagAccessEntity",
    "DagDetails",
    "ExtraMenuItem",
    "MenuItem",
    "PoolDetails",
    "StrictBaseModel",
    "TeamDetails",
    "VariableDetails",
    "create_openapi_http_exception_doc",
]


class BaseModel(PydanticModel):
    """A model of the API."""

    model_config = ConfigDict(from_attributes=True, populate_by_name=True)


class StrictBaseModel(BaseModel):
    """A model of the API that refuses unknown fields."""

    model_config = ConfigDict(from_attributes=True, populate_by_name=True, extra="forbid")


class AirflowRouter(APIRouter):
    """A router of the API."""


def create_openapi_http_exception_doc(responses_status_code: list[Any]) -> dict[int, dict[str, Any]]:
    """The descriptions of a route's errors, for OpenAPI."""
    return {int(code[0] if isinstance(code, tuple) else code): {"description": "Error"} for code in responses_status_code}


@dataclass
class AssetDetails:
    """The asset of a permission check."""

    id: str | None = None


@dataclass
class AssetAliasDetails:
    """The asset alias of a permission check."""

    id: str | None = None


@dataclass
class BackfillDetails:
    """The backfill of a permission check."""

    id: int | None = None
    dag_id: str | None = None


@dataclass
class ConfigurationDetails:
    """The section of the settings of a permission check."""

    section: str | None = None


@dataclass
class ConnectionDetails:
    """The connection of a permission check."""

    conn_id: str | None = None
    team_name: str | None = None


@dataclass
class DagDetails:
    """The DAG of a permission check."""

    id: str | None = None
    team_name: str | None = None


@dataclass
class PoolDetails:
    """The pool of a permission check."""

    name: str | None = None
    team_name: str | None = None


@dataclass
class TeamDetails:
    """The team of a permission check."""

    name: str | None = None


@dataclass
class VariableDetails:
    """The variable of a permission check."""

    key: str | None = None
    team_name: str | None = None


class AccessView(Enum):
    """Pages that need a permission."""

    CLUSTER_ACTIVITY = "CLUSTER_ACTIVITY"
    DOCS = "DOCS"
    IMPORT_ERRORS = "IMPORT_ERRORS"
    JOBS = "JOBS"
    PLUGINS = "PLUGINS"
    PROVIDERS = "PROVIDERS"
    TRIGGERS = "TRIGGERS"
    WEBSITE = "WEBSITE"


class DagAccessEntity(Enum):
    """Parts of a DAG that need a permission."""

    AUDIT_LOG = "AUDIT_LOG"
    CODE = "CODE"
    DEPENDENCIES = "DEPENDENCIES"
    HITL_DETAIL = "HITL_DETAIL"
    RUN = "RUN"
    TASK = "TASK"
    TASK_INSTANCE = "TASK_INSTANCE"
    TASK_LOGS = "TASK_LOGS"
    VERSION = "VERSION"
    WARNING = "WARNING"
    XCOM = "XCOM"


class MenuItem(StrEnum):
    """Entries of the menu."""

    ASSETS = "Assets"
    AUDIT_LOG = "Audit Log"
    CONFIG = "Config"
    CONNECTIONS = "Connections"
    DAGS = "Dags"
    DOCS = "Docs"
    JOBS = "Jobs"
    PLUGINS = "Plugins"
    POOLS = "Pools"
    PROVIDERS = "Providers"
    REQUIRED_ACTIONS = "Required Actions"
    VARIABLES = "Variables"
    XCOMS = "XComs"


@dataclass
class ExtraMenuItem:
    """A further entry of the menu."""

    text: str
    href: str
