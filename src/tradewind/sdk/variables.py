"""Variables, connections and hooks for DAG authors.

Variables and connections are looked up in the configured secrets backend, then in the environment (`TRADEWIND_VAR_NAME`,
`AIRFLOW_VAR_NAME`, `TRADEWIND_CONN_ID`, `AIRFLOW_CONN_ID`, in upper case; the first one found is used). Then they are requested
from the runtime of this process, which reads the stored ones. User code never gets a database connection.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from tradewind.model.errors import NotYetSupported, did_you_mean
from tradewind.provider_packages import hook_classes
from tradewind.sdk import older_hook_arguments, secret_registry
from tradewind.sdk.columns import of_table
from tradewind.sdk.exceptions import AirflowException, AirflowNotFoundException, VariableNotFound
from tradewind.wire import runtime
from tradewind.wire.messages import ChangeRows, Failure, GetConnection, GetVariable, ListRows, SetVariable, Value

log = logging.getLogger("tradewind.task")

VARIABLE_PREFIXES = ("TRADEWIND_VAR_", "AIRFLOW_VAR_")
CONNECTION_PREFIXES = ("TRADEWIND_CONN_", "AIRFLOW_CONN_")


HOOKS: dict[str, str] = {
    "http": "tradewind.hooks.http:HttpHook",
    "https": "tradewind.hooks.http:HttpHook",
    "smtp": "tradewind.hooks.smtp:SmtpHook",
    **dict.fromkeys(
        ("generic", "mssql", "mysql", "oracle", "postgres", "redshift", "snowflake", "sqlite", "trino"),
        "tradewind.hooks.sql:DbApiHook",
    ),
}
"""Connection type → import path of its hook class. Packages may add types."""


class _NotSet:
    """Marks an argument that was not given, for arguments where None is a value."""

    def __repr__(self) -> str:
        return "NOTSET"


NOTSET: Final = _NotSet()


class DatabaseNotReachable(AirflowNotFoundException, runtime.NoRuntime):
    """A variable or connection of the database was read while no task is running. Code that handles a missing connection
    handles this error too, as in Airflow: hooks of provider packages have defaults for this case.
    """


def request_value(request: runtime.Question, action: str) -> Value:
    """Send a request to the runtime whose answer is a `Value`.

    Args:
        action: what failed, for the error message, such as `cannot read variable 'x'`.

    Raises:
        DatabaseNotReachable: no task is running.
        AirflowException: the runtime could not answer; the message contains its reason.
    """
    try:
        answer = runtime.ask(request) if not _uses_local_database(request) else _ask_database(request)
    except runtime.NoRuntime as error:
        raise DatabaseNotReachable(*error.args) from None
    if isinstance(answer, Value):
        secret_registry.add(answer.value, answer.secret)
        return answer
    reason = answer.reason if isinstance(answer, Failure) else f"unexpected answer {type(answer).__name__}"
    raise AirflowException(f"{action}: {reason}")


def _uses_local_database(request: runtime.Question) -> bool:
    """True if a test changes something and no runtime is installed: then the local database of the test stores it."""
    return isinstance(request, SetVariable | ChangeRows) and not runtime.is_installed() and _local_database().in_test_process()


def _ask_database(request: runtime.Question) -> Any:
    return _local_database().open_database().ask(request)


def _local_database() -> Any:
    from tradewind.execution import local_database  # lazy import: only tests need it, and it has a higher rank

    return local_database


def _environment(prefixes: tuple[str, ...], name: str) -> str | None:
    for prefix in prefixes:
        found = os.environ.get(prefix + name.upper())
        if found is not None:
            return found
    return None


def _name_in_environment(prefixes: tuple[str, ...], name: str) -> str:
    return next(prefix + name.upper() for prefix in prefixes if prefix + name.upper() in os.environ)


def in_environment(prefixes: tuple[str, ...]) -> list[str]:
    """The environment variables that contain variables (`VARIABLE_PREFIXES`) or connections (`CONNECTION_PREFIXES`), sorted."""
    return sorted(name for name in os.environ if name.startswith(prefixes) and name not in prefixes)


def variable_outside_database(key: str) -> tuple[str, str] | None:
    """The text of a variable that the database need not have, and the place that has it: the secrets backend or an environment
    variable. None: only the database can have it.
    """
    found = _secrets_backends().variable(key)
    if found is not None:
        return found, "the secrets backend"
    text = _environment(VARIABLE_PREFIXES, key)
    return None if text is None else (text, f"the environment variable {_name_in_environment(VARIABLE_PREFIXES, key)}")


def connection_outside_database(conn_id: str) -> tuple[Connection, str] | None:
    """As `variable_outside_database`, for a connection.

    Raises:
        AirflowException: the environment variable is neither a URI nor a JSON object of the parts.
    """
    found = _secrets_backends().connection(conn_id)
    if found is not None:
        return found, "the secrets backend"
    text = _environment(CONNECTION_PREFIXES, conn_id)
    if text is None:
        return None
    place = f"the environment variable {_name_in_environment(CONNECTION_PREFIXES, conn_id)}"
    return Connection.from_text(text, conn_id), place


def _nearest_in_environment(prefixes: tuple[str, ...], name: str) -> str:
    known = [key[len(prefix) :].lower() for key in os.environ for prefix in prefixes if key.startswith(prefix)]
    return did_you_mean(name.lower(), known)


def _secrets_backends() -> ModuleType:
    # lazy import: the module reads settings, and settings need this module
    from tradewind.sdk import secrets_backends

    return secrets_backends


class Variable:
    """Named values, shared by all DAGs: `Variable.get("bucket")`. Values are strings; JSON is decoded on request.

    Queries of Airflow 1 and 2 return objects of this class: `session.query(Variable).filter(Variable.key == "bucket").first().val`.
    """

    def __init__(self, key: str | None = None, val: Any = None, description: str | None = None, **_ignored: Any) -> None:
        self.key = key
        self.val = val
        self.description = description

    def get_val(self) -> Any:
        """The value of this object."""
        return self.val

    def set_val(self, value: Any) -> None:
        """Give this object another value. `session.add(variable)` and `session.commit()` store it."""
        self.val = value

    @classmethod
    def get(
        cls,
        key: str,
        default: Any = NOTSET,
        deserialize_json: bool = False,
        *,
        default_var: Any = NOTSET,
    ) -> Any:
        """The value of a variable. `default_var` is Airflow 2's name for `default`.

        Raises:
            VariableNotFound: the variable does not exist and no default was given. (Also a `KeyError`.)
            AirflowException: `deserialize_json` is set and the value is not JSON.
        """
        fallback = default if default is not NOTSET else default_var
        outside = variable_outside_database(key)
        found: Any = None if outside is None else outside[0]
        hint = ""
        if found is None:
            try:
                answer = request_value(GetVariable(op=0, key=key), f"cannot read variable {key!r}")
            except DatabaseNotReachable:
                if fallback is NOTSET:
                    raise
                return fallback  # as Airflow does without a database
            if answer.found:
                found = answer.value
            elif isinstance(answer.value, str):
                hint = f" Did you mean {answer.value!r}?"
        if found is None:
            if fallback is not NOTSET:
                return fallback
            raise VariableNotFound(
                f"Variable {key} does not exist.{hint or _nearest_in_environment(VARIABLE_PREFIXES, key)} "
                f"Set it with `tradewind variables set {key} VALUE`, or pass a default."
            )
        if not deserialize_json:
            return found
        try:
            return json.loads(found)
        except ValueError as error:
            raise AirflowException(f"the value of variable {key!r} is not JSON: {error}") from None

    @classmethod
    def set(
        cls, key: str, value: Any, description: str | None = None, serialize_json: bool = False, session: Any = None
    ) -> None:
        """Store a variable. The value is stored as `str(value)`, or as indented JSON with `serialize_json`.

        Args:
            session: ignored, since tasks have no access to the database.
        """
        text = json.dumps(value, indent=2) if serialize_json else str(value)
        if _environment(VARIABLE_PREFIXES, key) is not None:
            log.warning("variable %r is also set in the environment; tasks will read that value", key)
        request_value(SetVariable(op=0, key=key, value=text, description=description), f"cannot set variable {key!r}")

    @classmethod
    def delete(cls, key: str, session: Any = None) -> int:
        """Delete a variable. Returns the number of deleted variables (0 or 1). `session` is ignored, as in `set`."""
        answer = request_value(SetVariable(op=0, key=key, value=None), f"cannot delete variable {key!r}")
        return 1 if answer.found else 0

    @classmethod
    def setdefault(cls, key: str, default: Any, description: str | None = None, deserialize_json: bool = False) -> Any:
        """The value of a variable. If it does not exist, it is first set to `default`."""
        found = cls.get(key, default=None, deserialize_json=deserialize_json)
        if found is not None:
            return found
        cls.set(key, default, description=description, serialize_json=deserialize_json)
        return default

    @classmethod
    def update(cls, key: str, value: Any, serialize_json: bool = False) -> None:
        """Change a variable that exists.

        Raises:
            VariableNotFound: the variable does not exist.
        """
        cls.get(key)
        cls.set(key, value, serialize_json=serialize_json)

    @classmethod
    def keys(cls, prefix: str = "") -> list[str]:
        """The names of the stored variables that begin with `prefix`, sorted. Those of the environment and of a secrets backend
        are not listed, as in Airflow.
        """
        answer = request_value(ListRows(0, "variable"), "cannot list the variables")
        return sorted(row["key"] for row in answer.value or () if row["key"].startswith(prefix))


def _normalized_type(name: str) -> str:
    """A connection type of a URI or of JSON, as hooks and packages name it."""
    return "postgres" if name == "postgresql" else name.replace("-", "_")


class Connection:
    """The address of another system and the credentials for it. `extra` is a JSON string, `extra_dejson` the decoded mapping.

    Give either `uri` or the single parts. URI: `type://login:password@host:port/schema?extra=…` with quoted parts. An extra that is
    not a flat mapping of strings is JSON in the query parameter `__extra__`.
    """

    EXTRA_KEY = "__extra__"
    _PARTS = ("conn_type", "host", "login", "password", "schema", "port", "extra", "description")

    def __init__(
        self,
        conn_id: str | None = None,
        conn_type: str | None = None,
        description: str | None = None,
        host: str | None = None,
        login: str | None = None,
        password: str | None = None,
        schema: str | None = None,
        port: int | None = None,
        extra: str | Mapping[str, Any] | None = None,
        uri: str | None = None,
    ) -> None:
        if uri is not None and any((conn_type, host, login, password, schema, port, extra)):
            raise AirflowException(f"connection {conn_id!r}: give either uri or the single parts, not both")
        self.conn_id = conn_id
        self.conn_type = conn_type
        self.description = description
        self.host = host
        self.login = login
        self.password = password
        self.schema = schema
        self.port = port
        self.extra: str | None = extra if isinstance(extra, str) or extra is None else json.dumps(dict(extra))
        if uri is not None:
            self._read_uri(uri)

    def __str__(self) -> str:
        """The id, as in Airflow."""
        return self.conn_id or ""

    def __repr__(self) -> str:
        return f"<Connection {self.conn_id!r} {self.conn_type or 'without type'} host={self.host!r}>"

    def _read_uri(self, uri: str) -> None:
        parts = urlsplit(uri)
        untyped = uri.startswith("//")
        if not parts.scheme and "://" not in uri and not untyped:
            raise AirflowException(f"connection {self.conn_id!r}: the URI has no type; expected a URI like postgres://host/db")
        scheme = "" if untyped else parts.scheme or uri.split("://", 1)[0]
        self.conn_type = None if untyped else _normalized_type(scheme)
        rest = uri[2:] if untyped else uri[len(scheme) + 3 :]
        protocol = ""
        if "://" in rest.split("?", 1)[0]:  # http://https://host: the second scheme belongs to the host
            protocol, rest = rest.split("://", 1)
            parts = urlsplit(f"//{rest}" if untyped else f"{scheme}://{rest}")
        try:
            port = parts.port
        except ValueError as error:
            raise AirflowException(f"connection {self.conn_id!r}: the URI has an invalid port: {error}") from None
        # urlsplit's hostname is in lower case, but names of buckets and files are case-sensitive
        netloc = parts.netloc.rpartition("@")[2]
        host = netloc.rpartition(":")[0] if port is not None else netloc.removesuffix(":")
        self.host = (f"{protocol}://" if protocol else "") + unquote(host)
        self.login = unquote(parts.username) if parts.username is not None else None
        self.password = unquote(parts.password) if parts.password is not None else None
        self.port = port
        self.schema = unquote(parts.path[1:])
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if query:
            self.extra = query[self.EXTRA_KEY] if self.EXTRA_KEY in query else json.dumps(query)

    # --- reading --------------------------------------------------------------------------------------------------

    @property
    def extra_dejson(self) -> dict[str, Any]:
        """`extra` as a mapping; empty if there is no extra.

        Raises:
            AirflowException: `extra` is not a JSON object.
        """
        return self.get_extra_dejson()

    def get_extra_dejson(self, nested: bool = False) -> dict[str, Any]:
        """Like `extra_dejson`. With `nested`, values that are JSON strings themselves are decoded, too."""
        if not self.extra:
            return {}
        try:
            found = json.loads(self.extra)
        except ValueError as error:
            raise AirflowException(f"connection {self.conn_id!r}: extra is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise AirflowException(f"connection {self.conn_id!r}: extra is a JSON {type(found).__name__}; it must be an object")
        if nested:
            for key, value in found.items():
                if isinstance(value, str):
                    try:
                        found[key] = json.loads(value)
                    except ValueError:
                        pass  # a plain string
        return found

    def get_extra(self) -> str | None:
        return self.extra

    async def aextra_dejson(self) -> dict[str, Any]:
        """`extra_dejson` in an event loop."""
        return self.get_extra_dejson()

    async def aget_uri(self) -> str:
        """`get_uri` in an event loop."""
        return self.get_uri()

    def set_extra(self, value: str | None) -> None:
        self.extra = value

    def get_password(self) -> str | None:
        return self.password

    def set_password(self, value: str | None) -> None:
        self.password = value

    def log_info(self) -> str:
        """The parts as one line of text, without the password and the extra. Airflow 1 and 2 have it for logs."""
        hidden = {name: "XXXXXXXX" if getattr(self, name) else None for name in ("password", "extra")}
        return (
            f"id: {self.conn_id}. Host: {self.host}, Port: {self.port}, Schema: {self.schema}, Login: {self.login}, "
            f"Password: {hidden['password']}, extra: {hidden['extra']}"
        )

    debug_info = log_info

    def parse_from_uri(self, uri: str) -> None:
        """Replace the parts by those of a URI. Raises as `from_uri`."""
        given = type(self).from_uri(uri, self.conn_id)
        for name in ("conn_type", "host", "login", "password", "schema", "port", "extra"):
            setattr(self, name, getattr(given, name))

    def get_uri(self) -> str:
        """The connection as a URI with quoted parts. `from_uri` is the inverse."""
        host, protocol = self.host or "", ""
        if "://" in host:
            protocol, host = host.split("://", 1)
            protocol += "://"
        uri = (self.conn_type.lower().replace("_", "-") + "://" if self.conn_type else "//") + protocol
        authority = ""
        if self.login is not None:
            authority += quote(self.login, safe="")
        if self.password is not None:
            authority += ":" + quote(self.password, safe="")
        if authority:
            uri += authority + "@"
        uri += quote(host, safe="")
        if self.port:
            uri += f":{self.port}" if host or authority else f"@:{self.port}"
        if self.schema:
            uri += "/" + quote(self.schema, safe="")
        if self.extra:
            uri += ("?" if self.schema else "/?") + self._extra_query(self.extra)
        return uri

    def _extra_query(self, extra: str) -> str:
        try:
            mapping = self.extra_dejson
            query = urlencode(mapping)
        except (AirflowException, TypeError):
            return urlencode({self.EXTRA_KEY: extra})
        if query and dict(parse_qsl(query, keep_blank_values=True)) == mapping:
            return query
        return urlencode({self.EXTRA_KEY: extra})

    def to_dict(self) -> dict[str, Any]:
        """`conn_id` and all parts that have a value; `extra` as a mapping."""
        shown: dict[str, Any] = {"conn_id": self.conn_id}
        for name in self._PARTS:
            value = getattr(self, name)
            if value is not None:
                shown[name] = self.extra_dejson if name == "extra" else value
        return shown

    def as_json(self) -> str:
        """JSON of the parts, without the id. `from_json` is the inverse."""
        return json.dumps({name: value for name, value in self.to_dict().items() if name != "conn_id"})

    def get_hook(self, *, hook_params: dict[str, Any] | None = None) -> Any:
        """The hook for the type of this connection.

        Raises:
            NotYetSupported: there is no hook for this type.
        """
        cls = self._hook_class((self.conn_type or "").replace("-", "_"))
        return cls(**{cls.conn_name_attr: self.conn_id, **(hook_params or {})})

    def _hook_class(self, conn_type: str) -> Any:
        """The class of an installed provider package, or Tradewind's own.

        Raises:
            NotYetSupported: there is neither.
        """
        installed = hook_classes.find(conn_type)
        if installed is not None:
            return hook_classes.load(installed)
        path = HOOKS.get(conn_type)
        if path is None:
            known = ", ".join(sorted({*HOOKS, *hook_classes.known()}))
            raise NotYetSupported(
                f"there is no hook for the type {self.conn_type!r} of connection {self.conn_id!r}; types with a hook: {known}. "
                "More come with provider packages: tradewind providers install NAME"
            )
        module, _, name = path.partition(":")
        return getattr(importlib.import_module(module), name)

    def test_connection(self) -> tuple[bool, str]:
        """Test the connection: (success, message).

        Raises:
            NotYetSupported: there is no hook for this type.
        """
        found: tuple[bool, str] = self.get_hook().test_connection()
        return found

    # --- parsing and lookup ---------------------------------------------------------------------------------------

    @classmethod
    def from_uri(cls, uri: str, conn_id: str | None = None) -> Connection:
        """Parse a URI.

        Raises:
            AirflowException: the URI has no type, or its port is not a number.
        """
        return cls(conn_id=conn_id, uri=uri)

    @classmethod
    def from_json(cls, value: str | Mapping[str, Any], conn_id: str | None = None) -> Connection:
        """Parse a JSON object of the parts. `type` is accepted for `conn_type`, `user` and `username` for `login`.

        Raises:
            AirflowException: not a JSON object, or an unknown key.
        """
        try:
            parts = dict(json.loads(value)) if isinstance(value, str) else dict(value)
        except (ValueError, TypeError) as error:
            raise AirflowException(f"connection {conn_id!r}: not a JSON object: {error}") from None
        stored_id = parts.pop("conn_id", None) or parts.pop("connection_id", None)
        conn_id = conn_id or stored_id
        for other, name in (("type", "conn_type"), ("user", "login"), ("username", "login")):
            if other in parts:
                parts.setdefault(name, parts.pop(other))
        for name in parts:
            if name not in (*cls._PARTS, "uri"):
                raise AirflowException(
                    f"connection {conn_id!r}: unknown key {name!r}.{did_you_mean(name, cls._PARTS)} "
                    f"The keys are {', '.join(cls._PARTS)}."
                )
        if parts.get("conn_type"):
            parts["conn_type"] = _normalized_type(str(parts["conn_type"]))
        if isinstance(parts.get("port"), str):
            try:
                parts["port"] = int(parts["port"]) if parts["port"].strip() else None
            except ValueError:
                raise AirflowException(f"connection {conn_id!r}: port {parts['port']!r} is not a number") from None
        return cls(conn_id=conn_id, **parts)

    @classmethod
    def from_text(cls, text: str, conn_id: str | None = None) -> Connection:
        """Parse the value of an environment variable or of a stored secret: a JSON object or a URI."""
        return cls.from_json(text, conn_id) if text.lstrip().startswith("{") else cls.from_uri(text.strip(), conn_id)

    @classmethod
    def get(cls, conn_id: str) -> Connection:
        """The connection with this id, from the secrets backend, the environment or the database.

        Raises:
            AirflowNotFoundException: there is no such connection.
        """
        return cls.get_connection_from_secrets(conn_id)

    @classmethod
    def get_connection_from_secrets(cls, conn_id: str) -> Connection:
        """Airflow 2's name for `get`, which tests of that time replace. Raises as `get`."""
        outside = connection_outside_database(conn_id)
        if outside is not None:
            return outside[0]
        answer = request_value(GetConnection(op=0, conn_id=conn_id), f"cannot read connection {conn_id!r}")
        if answer.found:
            return _connection_of(answer, conn_id)
        if conn_id in _of_file:
            return _of_file[conn_id]
        hint = f" Did you mean {answer.value!r}?" if isinstance(answer.value, str) else ""
        hint += _hint_at_default(conn_id)
        raise AirflowNotFoundException(
            f"there is no connection {conn_id!r}.{hint or _nearest_in_environment(CONNECTION_PREFIXES, conn_id)} "
            f"Add it with `tradewind connections add {conn_id} --conn-uri URI`, "
            f"or set TRADEWIND_CONN_{conn_id.upper()}."
        )

    @classmethod
    async def async_get(cls, conn_id: str) -> Connection:
        """As `get`, in an event loop: the request blocks a thread instead of the loop."""
        # lazy import: only coroutines need it, and they have imported it already
        import asyncio

        return await asyncio.to_thread(cls.get, conn_id)


def _hint_at_default(conn_id: str) -> str:
    """A sentence for a connection that every new database of Airflow has."""
    from tradewind.sdk.default_connections import DEFAULT_CONNECTIONS  # lazy import: only this error message needs the table

    if conn_id not in DEFAULT_CONNECTIONS:
        return ""
    return " A new database of Airflow has it as an example: `tradewind connections create-default-connections` adds such examples."


def _connection_of(answer: Value, conn_id: str) -> Connection:
    if isinstance(answer.value, str):
        return Connection.from_text(answer.value, conn_id)
    return Connection.from_json({name: value for name, value in answer.value.items() if value is not None}, conn_id)


def stored_connection(conn_id: str) -> Connection | None:
    """The connection of the database with this id, also if the environment or a secrets backend has another one.

    None: there is none.

    Raises:
        DatabaseNotReachable: no task is running.
        AirflowException: the runtime could not answer.
    """
    answer = request_value(GetConnection(op=0, conn_id=conn_id), f"cannot read connection {conn_id!r}")
    return _connection_of(answer, conn_id) if answer.found else None


_OF_FILE_MAX = 1_000
"""Maximum number of connections that DAG files add in one process."""

_of_file: dict[str, Connection] = {}
"""The connections that DAG files have added at their top level in this process. Stored connections have priority."""


def add_for_file(connection: Connection) -> None:
    """Let this process, and those that are forked from it, use a connection that a DAG file adds at its top level."""
    if connection.conn_id and len(_of_file) < _OF_FILE_MAX:
        _of_file[connection.conn_id] = connection


class BaseHook:
    """Base class of hooks: clients of other systems, configured by a connection."""

    _log: logging.Logger | None = None
    _logger_name: str | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        older_hook_arguments.wrap(cls)

    def __init__(self, logger_name: str | None = None) -> None:
        if logger_name is not None:
            self._logger_name = logger_name

    @property
    def log(self) -> logging.Logger:
        """The logger of the hook. Subclasses need not call `__init__`."""
        if self._log is None:
            cls = type(self)
            name = f"{cls.__module__}.{cls.__qualname__}"
            own = cls.__module__.startswith("tradewind.") and self._logger_name is None
            usual = f"tradewind.hooks.{cls.__name__}" if own else f"airflow.task.hooks.{self._logger_name or name}"
            self._log = logging.getLogger(usual)
        return self._log

    @classmethod
    def get_connection_form_widgets(cls) -> dict[str, Any]:
        """Fields that the hook adds to the form of a connection. The default is none."""
        return {}

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Differences from the usual form of a connection. The default is none."""
        return {}

    @classmethod
    async def aget_connection(cls, conn_id: str) -> Connection:
        """As `get_connection`, in an event loop: the request blocks a thread instead of the loop."""
        # lazy import: only coroutines need it, and they have imported it already
        import asyncio

        return await asyncio.to_thread(cls.get_connection, conn_id)

    @classmethod
    async def aget_hook(cls, conn_id: str, hook_params: dict[str, Any] | None = None) -> Any:
        """As `get_hook`, in an event loop."""
        return (await cls.aget_connection(conn_id)).get_hook(hook_params=hook_params)

    @classmethod
    def get_connection(cls, conn_id: str) -> Connection:
        """The connection with this id.

        Raises:
            AirflowNotFoundException: there is no such connection.
        """
        return Connection.get(conn_id)

    @classmethod
    def get_connections(cls, conn_id: str) -> list[Connection]:
        """The connection with this id, in a list. Airflow 1 chose one of several connections with the same id."""
        return [cls.get_connection(conn_id)]

    @classmethod
    def get_hook(cls, conn_id: str, hook_params: dict[str, Any] | None = None) -> Any:
        return cls.get_connection(conn_id).get_hook(hook_params=hook_params)

    def get_conn(self) -> Any:
        """The client object; each hook documents its type."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_conn()")


of_table(Variable, "id key val description is_encrypted")
of_table(Connection, "id conn_id conn_type description host login password schema port extra is_encrypted is_extra_encrypted")
