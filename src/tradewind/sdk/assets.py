"""Assets: data that tasks produce and that DAGs can be scheduled on. `Asset…` are Airflow 3's names, `Dataset…` Airflow 2's.

    orders = Asset("orders", uri="s3://bucket/orders")
    DAG("report", schedule=orders & Asset("prices"))
    BashOperator(task_id="load", outlets=[orders])

For the use of assets in a running task (`outlet_events`, `inlet_events`, `Metadata`) see `asset_events`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NoReturn
from urllib.parse import SplitResult, urlsplit

from tradewind.model.assets import AliasKey, AllOf, AnyOf, AssetKey, Condition, Leaf, expression, leaves
from tradewind.model.errors import DefinitionError
from tradewind.sdk import open_dags
from tradewind.timetables.base import Timetable
from tradewind.timetables.of_schedule import timetable_of

MAX_CHARACTERS = 1500
"""Maximum number of characters of a name or URI, as in Airflow."""


class BaseAsset:
    """Base of the objects that `schedule=` accepts: an asset, an alias, or several of them joined with `&` and `|`."""

    def condition(self) -> Condition:
        """The asset condition as plain values."""
        raise NotImplementedError

    def __and__(self, other: Any) -> AssetAll:
        return AssetAll(self, other) if isinstance(other, BaseAsset) else NotImplemented

    def __or__(self, other: Any) -> AssetAny:
        return AssetAny(self, other) if isinstance(other, BaseAsset) else NotImplemented

    def as_expression(self) -> Any:
        """Airflow's JSON form: {"all": [...]}, {"any": [...]}, {"asset": {...}}, {"alias": {...}}."""
        return expression(self.condition())

    def iter_assets(self) -> Iterator[tuple[Any, Asset]]:
        """((name, uri), asset) for each asset in the condition."""
        for one in _members(self):
            if isinstance(one, Asset):
                yield (one.name, one.uri), one

    def iter_asset_aliases(self) -> Iterator[tuple[str, AssetAlias]]:
        for one in _members(self):
            if isinstance(one, AssetAlias):
                yield one.name, one


class Asset(BaseAsset):
    """Data that tasks produce: a table, a file, a model.

    Args:
        name: the name for people. Default: the URI.
        uri: where the data is. Default: the name. It is normalised (see `normalise_uri`). Two assets are equal if both their names
            and their URIs are equal.
        group: a label for people and filters.
        extra: a JSON object with more information.
        watchers: triggers (`AssetWatcher`) whose events become events of this asset.
        access_control: Airflow 3.3's restriction to teams; accepted with a warning, without effect, because there are no teams.

    Raises:
        DefinitionError: an invalid name or URI.
    """

    __slots__ = ("extra", "group", "name", "uri")

    asset_type: ClassVar[str] = "asset"

    def __init__(
        self,
        name: str | None = None,
        uri: Any = None,
        *,
        group: str = "",
        extra: Mapping[str, Any] | None = None,
        watchers: Sequence[Any] = (),
        access_control: Any = None,
    ) -> None:
        what = type(self).__name__
        if access_control is not None:
            open_dags.warn_author(f"{what} {name or uri!r}: access_control has no effect, because there are no teams")
        self.watchers = list(watchers)
        self.access_control = access_control
        uri = None if uri is None else getattr(uri, "__fspath__", lambda: uri)()
        if name is None and uri is None:
            raise WrongAssetArguments(f"{what}() needs a name or a uri")
        if name is not None:
            _check_text(f"{what} name", name)
        self.uri: str = normalise_uri(uri if uri is not None else name)
        self.name: str = name if name is not None else self.uri
        self.group = group or self.asset_type
        self.extra: dict[str, Any] = dict(extra or {})
        try:
            json.dumps(self.extra)
        except (TypeError, ValueError) as error:
            raise DefinitionError(f"{what} {self.name!r}: extra must be a JSON object: {error}") from None

    def __getattr__(self, name: str) -> Any:
        """A field that a subclass has not set. Subclasses of Airflow 2's Dataset set only its fields, `uri` and `extra`."""
        if name == "name":
            return self.uri
        if name == "group":
            return self.asset_type
        if name in ("watchers", "access_control"):
            return [] if name == "watchers" else None
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def normalized_uri(self) -> str | None:
        """The URI if it has a scheme, else None."""
        return self.uri if urlsplit(self.uri).scheme else None

    def condition(self) -> AssetKey:
        extra = json.dumps(self.extra, sort_keys=True).encode() if self.extra else b""
        return AssetKey(self.name, self.uri, self.group, extra)

    @staticmethod
    def ref(name: str | None = None, uri: str | None = None) -> AssetRef:
        """A reference to an asset that is defined elsewhere, by its name or its URI."""
        return AssetRef(name=name, uri=uri)

    def __fspath__(self) -> str:
        return self.uri

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Asset) and (self.name, self.uri) == (other.name, other.uri)

    def __hash__(self) -> int:
        return hash((self.name, self.uri))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, uri={self.uri!r})"


class Dataset(Asset):
    """Airflow 2's name for an asset: `Dataset("s3://bucket/key", extra={...})`. The default name is the URI."""

    __slots__ = ()

    asset_type = "dataset"

    def __init__(self, name: Any = None, uri: Any = None, **others: Any) -> None:
        if isinstance(uri, Mapping):  # Airflow 2: Dataset(uri, extra)
            uri, others["extra"] = None, uri
        if uri is None:
            name, uri = None, name  # the name is the normalised URI
        super().__init__(name, uri, **others)


class Model(Asset):
    """An asset of the group `model`."""

    __slots__ = ()

    asset_type = "model"


class AssetRef(BaseAsset):
    """A reference to an asset defined elsewhere, by name or URI. It is resolved when an asset event arrives."""

    __slots__ = ("name", "uri")

    def __init__(self, *, name: str | None = None, uri: str | None = None) -> None:
        if (name is None) == (uri is None):
            raise WrongAssetArguments("Asset.ref() needs either name or uri, not both")
        self.name = "" if name is None else name
        self.uri = "" if uri is None else normalise_uri(uri)

    def condition(self) -> AssetKey:
        return AssetKey(self.name, self.uri)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AssetRef) and (self.name, self.uri) == (other.name, other.uri)

    def __hash__(self) -> int:
        return hash((AssetRef, self.name, self.uri))

    def __repr__(self) -> str:
        return f"Asset.ref(name={self.name!r})" if self.name else f"Asset.ref(uri={self.uri!r})"


class AssetAlias(BaseAsset):
    """A name for assets that a task chooses while it runs (`outlet_events[alias].add(asset)`).

    A DAG scheduled on the alias runs when an asset that was added to the alias is updated.
    """

    __slots__ = ("group", "name")

    def __init__(self, name: str, *, group: str = "asset") -> None:
        _check_text("Asset alias name", name)
        self.name = name
        self.group = group or "asset"

    def condition(self) -> AliasKey:
        return AliasKey(self.name, self.group)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AssetAlias) and self.name == other.name

    def __hash__(self) -> int:
        return hash((AssetAlias, self.name))

    def __repr__(self) -> str:
        return f"AssetAlias({self.name!r})"


DatasetAlias = AssetAlias


class _Combined(BaseAsset):
    """Several assets, aliases or conditions."""

    __slots__ = ("objects",)

    def __init__(self, *objects: BaseAsset) -> None:
        for one in objects:
            if not isinstance(one, BaseAsset):
                raise WrongAssetArguments(
                    f"{type(self).__name__} accepts only assets and aliases; {one!r} is a {type(one).__name__}"
                )
        if not objects:
            raise DefinitionError(f"{type(self).__name__}() needs at least one asset")
        # flatten: a & (b & c) becomes a & b & c
        self.objects: list[BaseAsset] = []
        for one in objects:
            self.objects += one.objects if type(one) is type(self) else [one]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.objects))})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.objects == self.objects

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.objects)))


class AssetAll(_Combined):
    """All of these assets have to be updated: the meaning of `&`, and of a list in `schedule=`."""

    __slots__ = ()

    def condition(self) -> Condition:
        return AllOf(tuple(one.condition() for one in self.objects))


class AssetAny(_Combined):
    """At least one of these assets has to be updated: the meaning of `|`."""

    __slots__ = ()

    def condition(self) -> Condition:
        return AnyOf(tuple(one.condition() for one in self.objects))


DatasetAll, DatasetAny = AssetAll, AssetAny


class AssetOrTimeSchedule(Timetable):
    """Runs on the schedule of a timetable, and also when assets are updated.

    Args:
        timetable: any value that `schedule=` accepts, except assets.
        assets: an asset, a condition, or a list (all of them). `datasets` is Airflow 2's name of this argument.
    """

    def __init__(self, *, timetable: Any, assets: Any = None, datasets: Any = None) -> None:
        if (assets is None) == (datasets is None):
            raise DefinitionError(f"{type(self).__name__} needs a timetable and assets (datasets is the older name of assets)")
        self.timetable = timetable
        self.asset_condition = as_condition(datasets if assets is None else assets)

    @property
    def summary(self) -> str:
        inner = self.timetable
        return f"Asset or {inner.summary if isinstance(inner, Timetable) else inner}"

    def serialize(self) -> dict[str, Any]:
        inner = timetable_of(self.timetable, "UTC")
        module = type(inner).__module__.replace("tradewind.timetables", "airflow.timetables", 1)
        encoded = {"__type": f"{module}.{type(inner).__name__}", "__var": inner.serialize()}
        return {"asset_condition": as_serialized(self.asset_condition), "timetable": encoded}


DatasetOrTimeSchedule = AssetOrTimeSchedule


class AssetTriggeredTimetable(Timetable):
    """Runs when assets are updated: the timetable of a DAG whose schedule is an asset, a list of assets or a condition.

    Args:
        assets: an asset, a condition, or a list (all of them).
    """

    def __init__(self, assets: Any) -> None:
        self.asset_condition = as_condition(assets)

    @property
    def summary(self) -> str:
        return "Asset"

    def serialize(self) -> dict[str, Any]:
        return {"asset_condition": as_serialized(self.asset_condition)}


def timetable_of_assets(schedule: Any) -> Timetable:
    """The timetable of a schedule on assets. A timetable is returned unchanged."""
    return schedule if isinstance(schedule, Timetable) else AssetTriggeredTimetable(schedule)


def as_serialized(given: BaseAsset) -> dict[str, Any]:
    """Airflow's JSON form of an asset or a condition, as in a serialized timetable."""
    match given:
        case Asset():
            facts = {"name": given.name, "uri": given.uri, "group": given.group, "extra": dict(given.extra or {})}
            return {"__type": "asset", **facts}
        case AssetAlias():
            return {"__type": "asset_alias", "name": given.name, "group": given.group}
        case AssetRef():
            return {"__type": "asset_ref", **({"name": given.name} if given.name else {"uri": given.uri})}
        case _Combined():
            kind = "asset_all" if isinstance(given, AssetAll) else "asset_any"
            return {"__type": kind, "objects": [as_serialized(one) for one in given.objects]}
    raise DefinitionError(f"{given!r} is a {type(given).__name__}, not an asset, an alias, a reference or a condition")


def split_schedule(schedule: Any) -> tuple[Any, BaseAsset | None]:
    """The time part and the asset part of a `schedule=` argument.

    Raises:
        DefinitionError: a list that contains something other than assets.
    """
    if isinstance(schedule, AssetOrTimeSchedule):
        inner = schedule.timetable
        if isinstance(inner, AssetOrTimeSchedule | BaseAsset):
            raise DefinitionError("the timetable of AssetOrTimeSchedule must not contain assets; give all assets in assets=")
        return inner, schedule.asset_condition
    if isinstance(schedule, AssetTriggeredTimetable):
        return None, schedule.asset_condition
    if isinstance(schedule, BaseAsset):
        return None, schedule
    if isinstance(schedule, Timetable) and schedule.partitioned and hasattr(schedule, "asset_condition"):
        return None, as_condition(schedule.asset_condition)
    if isinstance(schedule, list | tuple | set | frozenset):
        return None, as_condition(schedule)
    return schedule, None


def as_condition(given: Any) -> BaseAsset:
    """An asset or condition unchanged; a list as a condition that needs all its assets."""
    if isinstance(given, BaseAsset):
        return given
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise DefinitionError(
            f"{given!r} is a {type(given).__name__}; give an asset, a list of assets, or assets joined with & and |"
        )
    members = list(given)
    for one in members:
        if not isinstance(one, BaseAsset):
            raise DefinitionError(f"a list in schedule= may contain only assets; {one!r} is a {type(one).__name__}")
    if not members:
        raise DefinitionError("schedule=[] contains no asset; use schedule=None for a DAG that runs only when it is triggered")
    return AssetAll(*members)


def from_leaf(leaf: AssetKey | AliasKey) -> Asset | AssetAlias:
    """The asset or alias of a plain value."""
    if isinstance(leaf, AliasKey):
        return AssetAlias(leaf.name, group=leaf.group)
    return Asset(leaf.name, leaf.uri, group=leaf.group, extra=json.loads(leaf.extra) if leaf.extra else None)


def as_leaf(data: Any) -> Leaf | None:
    """An outlet or inlet as a plain value; None for an object that is not an asset (a string, a lineage object)."""
    return data.condition() if isinstance(data, Asset | AssetRef | AssetAlias) else None


def check_conflicts(located_message: Callable[[object], str], uses: Iterable[Leaf]) -> None:
    """Check that no asset name has two URIs and no asset URI has two names.

    Args:
        located_message: adds the DAG id and the source location in front of a message.

    Raises:
        DefinitionError: two assets contradict each other.
    """
    by_name: dict[str, str] = {}
    by_uri: dict[str, str] = {}
    for one in uses:
        if not isinstance(one, AssetKey) or not one.name or not one.uri:
            continue
        if by_name.setdefault(one.name, one.uri) != one.uri:
            raise DefinitionError(
                located_message(
                    f"the asset name {one.name!r} is used for {by_name[one.name]!r} and for {one.uri!r}; rename one of them"
                )
            )
        if by_uri.setdefault(one.uri, one.name) != one.name:
            raise DefinitionError(
                located_message(
                    f"the asset URI {one.uri!r} is used with the names {by_uri[one.uri]!r} and {one.name!r}; use one of them"
                )
            )


def _members(condition: BaseAsset) -> Iterator[BaseAsset]:
    if isinstance(condition, _Combined):
        for one in condition.objects:
            yield from _members(one)
    else:
        yield condition


def leaves_of(condition: BaseAsset) -> list[Leaf]:
    return list(leaves(condition.condition()))


# --- names and URIs ---------------------------------------------------------------------------------------------------


class WrongAssetArguments(DefinitionError, TypeError):
    """Arguments from which no asset, reference or condition can be made. In Airflow this is a TypeError."""


class InvalidAssetText(DefinitionError, ValueError):
    """A text that cannot be the name or URI of an asset. In Airflow this is a ValueError."""


def _check_text(what: str, value: Any) -> None:
    """Raises InvalidAssetText: the text cannot be a name or URI.

    Args:
        what: `Asset name`.
    """
    if not isinstance(value, str):
        raise InvalidAssetText(f"{what} is {value!r}; it must be a string")
    if not value or value.isspace():
        raise InvalidAssetText(f"{what} is empty")
    if len(value) > MAX_CHARACTERS:
        raise InvalidAssetText(f"{what} cannot exceed {MAX_CHARACTERS} characters; it has {len(value)} ({value[:40]!r}…)")


def normalise_uri(uri: Any) -> str:
    """The normalised form of a URI: without user and password, fragment and trailing slash, and with a sorted query.

    A string without a scheme, or with a scheme that begins with `x-`, stays unchanged. URIs of the schemes s3, gs, file, postgres,
    mysql, trino and bigquery are checked, and default ports are added. An invalid URI of these schemes is kept, with a warning,
    as in Airflow.

    Raises:
        InvalidAssetText: the URI is empty, too long, or has the reserved scheme `airflow`.
    """
    _check_text("Asset URI", uri)
    text = str(uri)
    try:
        parsed = urlsplit(text)
    except ValueError as error:
        raise InvalidAssetText(f"the asset URI {text!r} is not a valid URI: {error}") from None
    scheme = parsed.scheme.lower()
    if not scheme or scheme.startswith("x-"):
        return text
    if scheme == "airflow":
        raise InvalidAssetText(f"the asset URI {text!r} has the reserved scheme 'airflow'; use another scheme")
    _, userinfo, host = parsed.netloc.rpartition("@")
    if userinfo:
        open_dags.warn_author(f"the asset URI of {host} contains a user or password, which is removed")
    query = "&".join(sorted(parsed.query.split("&"))) if parsed.query else ""
    path = parsed.path.rstrip("/") or "/"
    clean = SplitResult(scheme, host, path, query, "")
    check = _SCHEMES.get(scheme)
    if check is not None:
        try:
            clean = check(clean)
        except ValueError as error:
            open_dags.warn_author(
                f"the asset URI {clean.geturl()!r} is not a valid URI of the scheme {scheme}: {error}; it is kept"
            )
    return clean.geturl()


def _bucket(uri: SplitResult) -> SplitResult:
    if not uri.netloc:
        _fail("the bucket is missing")
    return uri


def _file(uri: SplitResult) -> SplitResult:
    if uri.path == "/":
        _fail("the path of the file is missing")
    return uri


def _sql(port: int | None, parts: int, default: str = "") -> Callable[[SplitResult], SplitResult]:
    """Check `host[:port]` and a path of `parts` names."""

    def check(uri: SplitResult) -> SplitResult:
        if not uri.netloc:
            _fail("the host is missing")
        names = uri.path.strip("/").split("/")
        if default and len(names) == parts - 1:
            names.insert(1, default)
        if len(names) != parts or not all(names):
            _fail(f"the path must have {parts} names")
        host = f"{uri.netloc}:{port}" if port is not None and uri.port is None else uri.netloc
        return uri._replace(netloc=host, path="/" + "/".join(names))

    return check


def _renamed(scheme: str, check: Callable[[SplitResult], SplitResult]) -> Callable[[SplitResult], SplitResult]:
    return lambda uri: check(uri._replace(scheme=scheme))


def _fail(why: str) -> NoReturn:
    raise ValueError(why)


_SCHEMES: dict[str, Callable[[SplitResult], SplitResult]] = {
    "s3": _bucket,
    "gs": _bucket,
    "gcs": _renamed("gs", _bucket),
    "file": _file,
    "postgres": _sql(5432, 3, "default"),
    "postgresql": _renamed("postgres", _sql(5432, 3, "default")),
    "mysql": _sql(3306, 2),
    "mariadb": _renamed("mysql", _sql(3306, 2)),
    "trino": _sql(8080, 3),
    "bigquery": _sql(None, 2),
}
