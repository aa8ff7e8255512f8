"""`BaseAuthManager`: the base class of auth managers of provider packages.

An auth manager can be created and asked, as its tests do. Tradewind's own API does not use it: accounts, single sign-on and
directories are its way to let people in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tradewind.airflow.compat import server_internals
from tradewind.airflow.compat.auth_models import (
    ConnectionDetails,
    DagDetails,
    MenuItem,
    PoolDetails,
    TeamDetails,
    VariableDetails,
)

__all__ = ["BaseAuthManager"]


class BaseAuthManager:
    """Decides who may do what. Subclasses define the methods `is_authorized_…`; the methods for several objects call them."""

    def __init__(self, appbuilder: Any = None) -> None:
        self.appbuilder = appbuilder

    def __class_getitem__(cls, _user: Any) -> type[BaseAuthManager]:
        """`BaseAuthManager[User]`."""
        return cls

    def init(self) -> None:
        """Called once, when the API of Airflow starts."""

    async def get_user_from_token(self, token: str) -> Any:
        """The user of a token that Airflow's API has issued.

        Raises:
            NotYetSupported: always; Tradewind's API issues its own tokens.
        """
        return server_internals.get_user_from_token(token)

    def generate_jwt(self, user: Any, **more: Any) -> str:
        """A token for a user.

        Raises:
            NotYetSupported: always; Tradewind's API issues its own tokens.
        """
        made: str = server_internals.generate_jwt(user, **more)
        return made

    def revoke_token(self, token: str) -> None:
        """Called when a user logs out."""

    def refresh_user(self, *, user: Any) -> Any:
        """The user with new credentials; None if nothing has changed."""

    def get_url_logout(self) -> str | None:
        """The address of a page that ends the session elsewhere."""

    def is_authorized_team(self, *, method: str, user: Any, details: Any = None) -> bool:
        """Whether a user belongs to a team."""
        raise NotImplementedError(f"{type(self).__name__} does not define is_authorized_team: it knows no teams")

    def is_authorized_hitl_task(self, *, assigned_users: set[str], user: Any) -> bool:
        """Whether a user may answer a task that waits for certain users."""
        return user.get_id() in assigned_users

    # --- several objects -----------------------------------------------------------------------------------------------

    def batch_is_authorized_connection(self, requests: Iterable[Mapping[str, Any]], *, user: Any) -> bool:
        """Whether all requests for connections are allowed."""
        return _all(self.is_authorized_connection, requests, user)  # type: ignore[attr-defined]

    def batch_is_authorized_dag(self, requests: Iterable[Mapping[str, Any]], *, user: Any) -> bool:
        """Whether all requests for DAGs are allowed."""
        return all(
            self.is_authorized_dag(  # type: ignore[attr-defined]
                method=one["method"], access_entity=one.get("access_entity"), details=one.get("details"), user=user
            )
            for one in requests
        )

    def batch_is_authorized_pool(self, requests: Iterable[Mapping[str, Any]], *, user: Any) -> bool:
        """Whether all requests for pools are allowed."""
        return _all(self.is_authorized_pool, requests, user)  # type: ignore[attr-defined]

    def batch_is_authorized_variable(self, requests: Iterable[Mapping[str, Any]], *, user: Any) -> bool:
        """Whether all requests for variables are allowed."""
        return _all(self.is_authorized_variable, requests, user)  # type: ignore[attr-defined]

    def filter_authorized_connections(
        self, *, conn_ids: set[str], user: Any, method: str = "GET", team_name: str | None = None
    ) -> set[str]:
        """The names of the connections, of those given, that a user may use."""
        asked: Any = self.is_authorized_connection  # type: ignore[attr-defined]
        return {
            one
            for one in conn_ids
            if asked(method=method, details=ConnectionDetails(conn_id=one, team_name=team_name), user=user)
        }

    def filter_authorized_dag_ids(
        self, *, dag_ids: set[str], user: Any, method: str = "GET", team_name: str | None = None
    ) -> set[str]:
        """The names of the DAGs, of those given, that a user may use."""
        asked: Any = self.is_authorized_dag  # type: ignore[attr-defined]
        return {one for one in dag_ids if asked(method=method, details=DagDetails(id=one, team_name=team_name), user=user)}

    def filter_authorized_pools(
        self, *, pool_names: set[str], user: Any, method: str = "GET", team_name: str | None = None
    ) -> set[str]:
        """The names of the pools, of those given, that a user may use."""
        asked: Any = self.is_authorized_pool  # type: ignore[attr-defined]
        return {
            one for one in pool_names if asked(method=method, details=PoolDetails(name=one, team_name=team_name), user=user)
        }

    def filter_authorized_variables(
        self, *, variable_keys: set[str], user: Any, method: str = "GET", team_name: str | None = None
    ) -> set[str]:
        """The names of the variables, of those given, that a user may use."""
        asked: Any = self.is_authorized_variable  # type: ignore[attr-defined]
        return {
            one
            for one in variable_keys
            if asked(method=method, details=VariableDetails(key=one, team_name=team_name), user=user)
        }

    def filter_authorized_teams(self, *, teams_names: set[str], user: Any, method: str = "GET") -> set[str]:
        """The names of the teams, of those given, that a user belongs to."""
        asked = self.is_authorized_team
        return {one for one in teams_names if asked(method=method, details=TeamDetails(name=one), user=user)}

    def get_authorized_menu_items(self, *, user: Any) -> list[MenuItem]:
        """The entries of the menu that a user sees."""
        found: list[MenuItem] = self.filter_authorized_menu_items(list(MenuItem), user=user)  # type: ignore[attr-defined]
        return found

    # --- extensions of Airflow -----------------------------------------------------------------------------------------

    def get_extra_menu_items(self, *, user: Any) -> list[Any]:
        """Further entries of the menu."""
        del user
        return []

    def get_fastapi_app(self) -> Any:
        """Routes of the auth manager, or None."""

    def get_fastapi_middlewares(self) -> list[Any]:
        """Middlewares of Airflow's API."""
        return []

    @staticmethod
    def get_cli_commands() -> list[Any]:
        """Commands of the auth manager."""
        return []

    @staticmethod
    def get_db_manager() -> str | None:
        """The import path of the class that migrates tables of the auth manager, or None."""


def _all(asked: Callable[..., bool], requests: Iterable[Mapping[str, Any]], user: Any) -> bool:
    return all(asked(method=one["method"], details=one.get("details"), user=user) for one in requests)
