"""`BaseAuthManager`, as auth managers of provider packages subclass it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import tradewind.airflow  # noqa: F401  serves the namespace
from tradewind.model.errors import NotYetSupported

from airflow.api_fastapi.auth.managers.base_auth_manager import BaseAuthManager  # isort: skip
from airflow.api_fastapi.common.types import MenuItem  # isort: skip


class User:
    def get_id(self) -> str:
        return "ann"


class Manager(BaseAuthManager["User"]):
    """Allows to read everything whose name begins with `a`, to its own team."""

    @staticmethod
    def _asked(method: str, name: str | None, user: Any) -> bool:
        return method == "GET" and (name or "a").startswith("a") and isinstance(user, User)

    def is_authorized_connection(self, *, method: str, user: Any, details: Any = None) -> bool:
        return self._asked(method, details and details.conn_id, user)

    def is_authorized_dag(self, *, method: str, user: Any, access_entity: Any = None, details: Any = None) -> bool:
        return access_entity is None and self._asked(method, details and details.id, user)

    def is_authorized_pool(self, *, method: str, user: Any, details: Any = None) -> bool:
        return self._asked(method, details and details.name, user) and details.team_name in (None, "a")

    def is_authorized_variable(self, *, method: str, user: Any, details: Any = None) -> bool:
        return self._asked(method, details and details.key, user)

    def filter_authorized_menu_items(self, menu_items: list[MenuItem], *, user: Any) -> list[MenuItem]:
        return menu_items[:1]


def test_questions_about_several_objects_are_asked_one_by_one() -> None:
    manager, user = Manager(), User()
    names = {"alpha", "beta"}
    assert manager.filter_authorized_connections(conn_ids=names, user=user) == {"alpha"}
    assert manager.filter_authorized_dag_ids(dag_ids=names, user=user) == {"alpha"}
    assert manager.filter_authorized_dag_ids(dag_ids=names, user=user, method="PUT") == set()
    assert manager.filter_authorized_pools(pool_names=names, user=user, team_name="a") == {"alpha"}
    assert manager.filter_authorized_pools(pool_names=names, user=user, team_name="b") == set()
    assert manager.filter_authorized_variables(variable_keys=names, user=user) == {"alpha"}
    assert manager.get_authorized_menu_items(user=user) == [next(iter(MenuItem))]


@pytest.mark.parametrize("kind", ["connection", "dag", "variable"])
def test_a_batch_is_allowed_if_all_its_requests_are(kind: str) -> None:
    manager, user = Manager(), User()
    asked = getattr(manager, f"batch_is_authorized_{kind}")
    assert asked([{"method": "GET"}, {"method": "GET", "details": None}], user=user)
    assert not asked([{"method": "GET"}, {"method": "DELETE"}], user=user)
    assert not manager.batch_is_authorized_dag([{"method": "GET", "access_entity": "RUN"}], user=user)


def test_what_a_manager_need_not_define() -> None:
    manager, user = Manager(), User()
    assert manager.is_authorized_hitl_task(assigned_users={"ann"}, user=user)
    assert not manager.is_authorized_hitl_task(assigned_users={"bob"}, user=user)
    assert (manager.get_cli_commands(), manager.get_fastapi_app(), manager.get_url_logout()) == ([], None, None)
    with pytest.raises(NotImplementedError, match="Manager does not define is_authorized_team"):
        manager.is_authorized_team(method="GET", user=user)


def test_tokens_of_airflows_api_do_not_exist() -> None:
    with pytest.raises(NotYetSupported, match="generate_jwt"):
        Manager().generate_jwt(User())
    with pytest.raises(NotYetSupported, match="get_user_from_token"):
        asyncio.run(Manager().get_user_from_token("x"))
