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
    """A model of the API without further fields."""

    model_config = ConfigDict(from_attributes=True, populate_by_name=True, extra="forbid")


class AirflowRouter(APIRouter):
    """A router of the API."""


def create_openapi_http_exception_doc(responses_status_code: list[Any]) -> dict[int, dict[str, Any]]:
    """The errors of a route for its description."""
    return {int(code[0] if isinstance(code, tuple) else code): {"description": "Error"} for code in responses_status_code}


@dataclass
class AssetDetails:
    """Which asset somebody wants to use."""

    id: str | None = None


@dataclass
class AssetAliasDetails:
    """Which asset alias somebody wants to use."""

    id: str | None = None


@dataclass
class BackfillDetails:
    """Which backfill somebody wants to use."""

    id: int | None = None
    dag_id: str | None = None


@dataclass
class ConfigurationDetails:
    """Which section of the settings somebody wants to read."""

    section: str | None = None


@dataclass
class ConnectionDetails:
    """Which connection somebody wants to use."""

    conn_id: str | None = None
    team_name: str | None = None


@dataclass
class DagDetails:
    """Which DAG somebody wants to use."""

    id: str | None = None
    team_name: str | None = None


@dataclass
class PoolDetails:
    """Which pool somebody wants to use."""

    name: str | None = None
    team_name: str | None = None


@dataclass
class TeamDetails:
    """Which team somebody wants to see."""

    name: str | None = None


@dataclass
class VariableDetails:
    """Which variable somebody wants to use."""

    key: str | None = None
    team_name: str | None = None


class AccessView(Enum):
    """Pages that some people may see."""

    CLUSTER_ACTIVITY = "CLUSTER_ACTIVITY"
    DOCS = "DOCS"
    IMPORT_ERRORS = "IMPORT_ERRORS"
    JOBS = "JOBS"
    PLUGINS = "PLUGINS"
    PROVIDERS = "PROVIDERS"
    TRIGGERS = "TRIGGERS"
    WEBSITE = "WEBSITE"


class DagAccessEntity(Enum):
    """Parts of a DAG that some people may see."""

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
