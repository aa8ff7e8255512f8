"""The bundles of a deployment, read from the setting `bundles.list`. Pure.

Two forms are accepted. Airflow's JSON list names all bundles, with the DAG folder only if it is in the list. Tradewind's own form
adds bundles to the DAG folder: `git+URL@ref#subdir=folder&conn=id` for git, `s3://bucket/prefix#conn=id` for an object store, each
with an optional name before it (`reports=git+…`).
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import msgspec

from tradewind.model.bundles import version_folder
from tradewind.model.errors import ConfigError, did_you_mean
from tradewind.model.moments import SECOND

GIT = "git+"
NEWEST = "newest"
"""Name of the link, in the folder of a bundle, to the version that was fetched last."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")
_FOLDER_CLASSES = ("airflow.dag_processing.bundles.local.LocalDagBundle",)
_GIT_CLASSES = ("airflow.providers.git.bundles.git.GitDagBundle",)
_STORE_CLASSES = {
    "airflow.providers.amazon.aws.bundles.s3.S3DagBundle": ("s3", "bucket_name", "aws_conn_id", "aws_default"),
    "airflow.providers.google.cloud.bundles.gcs.GCSDagBundle": ("gs", "bucket_name", "gcp_conn_id", "google_cloud_default"),
    "airflow.providers.microsoft.azure.bundles.wasb.WasbDagBundle": ("abfs", "container_name", "wasb_conn_id", "wasb_default"),
}
"""Class → scheme, name of the argument for the bucket, name of the argument for the connection, default connection."""
_DEFAULT_CONNECTIONS = {default for *_, default in _STORE_CLASSES.values()}
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_NO_STORES = ("http", "https", "ssh", "git")
"""If an address begins with one of these schemes, the prefix `git+` was forgotten."""
_GIT_OPTIONS = (
    "tracking_ref",
    "subdir",
    "git_conn_id",
    "repo_url",
    "prune_dotgit_folder",
    "refresh_interval",
    "view_url_template",
)
_OWN_OPTIONS = ("subdir", "conn", "refresh")
_OWN_STORE_OPTIONS = ("conn", "refresh")


class BundleSpec(msgspec.Struct, frozen=True):
    """One bundle."""

    name: str
    kind: Literal["folder", "git", "object-store"]
    place: str = ""
    """The folder (empty: the DAG folder), the address of the repository (empty: the host of the connection), or the address of the
    folder in an object store, as fsspec writes it."""
    ref: str = "main"
    """Branch, tag or commit that is followed."""
    subdir: str = ""
    """Folder with the DAG files inside the repository."""
    conn_id: str = ""
    refresh_interval: int | None = None
    """Microseconds between two fetches; None: the value of the setting."""
    view_url: str = ""
    """Address of a page that shows a version, with `{version}` and `{subdir}`; empty: derived from the address."""

    @property
    def has_versions(self) -> bool:
        """Whether a run keeps the version of its DAG files until it ends."""
        return self.kind != "folder"

    @property
    def needs_connection(self) -> bool:
        """Whether the bundle cannot be fetched without its connection. Airflow's default connections may be missing: then
        credentials come from the environment."""
        return bool(self.conn_id) and not (self.kind == "object-store" and self.conn_id in _DEFAULT_CONNECTIONS)

    @property
    def view_template(self) -> str:
        """The address of the page that shows a version, with `{version}`; empty: unknown."""
        template = self.view_url or (_known_view_url(self.place) if self.kind == "git" else "")
        if not self.subdir:
            template = template.replace("/{subdir}", "")
        return template.replace("{subdir}", self.subdir)


class VersionedBundle(msgspec.Struct, frozen=True):
    """A bundle with versions, and the folder of the versions on this machine."""

    spec: BundleSpec
    folder: str
    """The folder of the bundle, absolute."""

    def files(self, version: str) -> str:
        """The folder with the DAG files of a version."""
        return os.path.join(version_folder(self.folder, version), self.spec.subdir).rstrip("/")

    @property
    def newest(self) -> str:
        """A path that always leads to the DAG files of the version that was fetched last."""
        return os.path.join(self.folder, NEWEST, self.spec.subdir).rstrip("/")

    def newest_version(self) -> str:
        """The version that was fetched last; empty: none yet."""
        try:
            return os.path.basename(os.readlink(os.path.join(self.folder, NEWEST)))
        except OSError:
            return ""


def read_bundles(text: str | None, default: str) -> tuple[BundleSpec, ...]:
    """Read the setting.

    Args:
        default: name of the bundle of the DAG folder.

    Raises:
        ConfigError: the setting cannot be read, has an unknown kind or option, or has the same name twice.
    """
    text = (text or "").strip()
    if not text:
        return (BundleSpec(default, "folder"),)
    if text.startswith("["):
        found = [_from_airflow(entry, number) for number, entry in enumerate(_json_list(text), 1)]
    else:
        found = [BundleSpec(default, "folder"), *(_from_text(word) for word in text.split())]
    seen = set()
    for spec in found:
        if spec.name in seen:
            raise ConfigError(
                f"bundles.list has two bundles with the name {spec.name!r}; give each its own: name=git+https://…, name=s3://…"
            )
        seen.add(spec.name)
    return tuple(found)


def _json_list(text: str) -> list[Any]:
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"bundles.list is no valid JSON: {error}") from None
    return list(entries)


def _from_airflow(entry: Any, number: int) -> BundleSpec:
    where = f"entry {number} of bundles.list"
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not isinstance(entry.get("classpath"), str):
        raise ConfigError(f"{where} must be an object with name, classpath and kwargs")
    name, classpath, kwargs = _checked_name(entry["name"], where), entry["classpath"], entry.get("kwargs") or {}
    if not isinstance(kwargs, dict):
        raise ConfigError(f"{where}: kwargs must be an object, not {kwargs!r}")
    if classpath in _FOLDER_CLASSES:
        _refuse_unknown(kwargs, ("path", "refresh_interval", "view_url_template"), where)
        return BundleSpec(name, "folder", _text(kwargs, "path", where))
    if classpath in _STORE_CLASSES:
        return _store_from_airflow(name, classpath, kwargs, where)
    if classpath not in _GIT_CLASSES:
        known = (*_FOLDER_CLASSES, *_GIT_CLASSES, *_STORE_CLASSES)
        raise ConfigError(
            f"{where}: unknown classpath {classpath!r}.{did_you_mean(classpath, known)} Known: {', '.join(known)}"
        )
    _refuse_unknown(kwargs, _GIT_OPTIONS, where)
    ref = _text(kwargs, "tracking_ref", where)
    if not ref:
        raise ConfigError(f"{where}: tracking_ref is missing: the branch or tag to follow")
    place, conn_id = _text(kwargs, "repo_url", where), _text(kwargs, "git_conn_id", where)
    if kwargs.get("prune_dotgit_folder") is False:
        raise ConfigError(f"{where}: prune_dotgit_folder=false is not supported: the versions of a bundle have no .git folder")
    return _git(
        BundleSpec(
            name,
            "git",
            place,
            ref,
            _text(kwargs, "subdir", where),
            conn_id or ("" if place else "git_default"),
            _interval(kwargs.get("refresh_interval"), where),
            _text(kwargs, "view_url_template", where),
        ),
        where,
    )


def _store_from_airflow(name: str, classpath: str, kwargs: dict[str, Any], where: str) -> BundleSpec:
    scheme, bucket_argument, conn_argument, default = _STORE_CLASSES[classpath]
    _refuse_unknown(kwargs, (bucket_argument, "prefix", conn_argument, "refresh_interval", "view_url_template"), where)
    bucket = _text(kwargs, bucket_argument, where).strip("/")
    if not bucket:
        raise ConfigError(f"{where}: {bucket_argument} is missing")
    place = f"{scheme}://{bucket}/{_text(kwargs, 'prefix', where).strip('/')}".rstrip("/")
    _check_store(place, where)
    return BundleSpec(
        name,
        "object-store",
        place,
        "",
        "",
        _text(kwargs, conn_argument, where) if conn_argument in kwargs else default,
        _interval(kwargs.get("refresh_interval"), where),
        _text(kwargs, "view_url_template", where),
    )


def _from_text(word: str) -> BundleSpec:
    name, equals, address = word.partition("=")
    if not equals or not _NAME.fullmatch(name):
        name, address = "", word
    where = f"bundle {hidden(word)!r} of bundles.list"
    scheme, colon, _ = address.partition("://")
    if colon and _SCHEME.fullmatch(scheme) and not scheme.startswith(GIT) and scheme not in _NO_STORES:
        return _store_from_text(name, address, where)
    if not address.startswith(GIT):
        raise ConfigError(
            f"{where} must be git+URL@branch#subdir=folder, the address of a folder in an object store (s3://bucket/folder), or "
            "Airflow's JSON list"
        )
    address, _, fragment = address.removeprefix(GIT).partition("#")
    options = _options_of(fragment, _OWN_OPTIONS, where)
    place, ref = _ref_of(address)
    if not name:
        name = _checked_name(place.rstrip("/").rpartition("/")[2].rpartition(":")[2].removesuffix(".git"), where)
    spec = BundleSpec(
        name,
        "git",
        place,
        ref or "main",
        options.get("subdir", ""),
        options.get("conn", ""),
        _interval(options.get("refresh"), where),
    )
    return _git(spec, where)


def _store_from_text(name: str, address: str, where: str) -> BundleSpec:
    place, _, fragment = address.partition("#")
    options = _options_of(fragment, _OWN_STORE_OPTIONS, where)
    place = place.rstrip("/")
    _check_store(place, where)
    name = name or _checked_name(place.rpartition("/")[2].partition("@")[0], where)
    return BundleSpec(name, "object-store", place, "", "", options.get("conn", ""), _interval(options.get("refresh"), where))


def _options_of(fragment: str, known: tuple[str, ...], where: str) -> dict[str, str]:
    """The options after the `#` of an address."""
    options = dict(parse_qsl(fragment))
    _refuse_unknown(options, known, where)
    for name in known:
        if any(f"{mark}{name}=" in value for value in options.values() for mark in ",;"):
            raise ConfigError(f"{where}: the options after # are separated by &, such as #conn=ID&refresh=10")
    return options


def _ref_of(address: str) -> tuple[str, str]:
    """Split `URL@ref`. The user in `ssh://git@host/` and `git@host:path` is no ref."""
    if "://" in address:
        start = address.find("/", address.find("://") + 3)
    else:
        start = 0 if address.startswith(("/", "~")) else address.find(":")
    at = address.rfind("@")
    return (address[:at], address[at + 1 :]) if at > start >= 0 else (address, "")


def _git(spec: BundleSpec, where: str) -> BundleSpec:
    if spec.place.startswith("-") or spec.ref.startswith("-") or "::" in spec.place:
        raise ConfigError(f"{where}: {hidden(spec.place)!r} with {spec.ref!r} is no address and branch of a repository")
    _refuse_password(spec.place, "git_conn_id (or #conn=ID)", "of type git", where)
    parts = spec.subdir.split("/") if spec.subdir else []
    if spec.subdir.startswith("/") or ".." in parts:
        raise ConfigError(f"{where}: subdir {spec.subdir!r} must be a folder inside the repository")
    return spec


def _check_store(place: str, where: str) -> None:
    inside = place.partition("://")[2]
    if not inside or "::" in place or ".." in inside.split("/"):
        raise ConfigError(f"{where}: {hidden(place)!r} is no address of a folder, such as s3://bucket/folder")
    _refuse_password(place, "#conn=ID", "with credentials", where)


def _refuse_password(place: str, argument: str, kind: str, where: str) -> None:
    if urlsplit(place).password:
        raise ConfigError(
            f"{where}: the address contains a password, which other users of this machine could read. "
            f"Put it into a connection {kind}, and give its id as {argument}"
        )


def _refuse_unknown(given: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in given:
        if key not in known:
            raise ConfigError(f"{where}: unknown option {key!r}.{did_you_mean(key, known)} Known: {', '.join(known)}")


def _text(kwargs: dict[str, Any], key: str, where: str) -> str:
    value = kwargs.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{where}: {key} must be a text, not {value!r}")
    return (value or "").strip()


def _interval(value: object, where: str) -> int | None:
    if value is None:
        return None
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 10 * 365 * 86_400:
        raise ConfigError(f"{where}: the refresh interval {value!r} must be a number of seconds, at least 1")
    return round(seconds * SECOND)


def _checked_name(name: str, where: str) -> str:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{where}: {name!r} is no name of a bundle: letters, digits, '_', '-' and '.', at most 200")
    return name


def hidden(address: str) -> str:
    """An address without its password, for messages and logs."""
    parts = urlsplit(address)
    if not parts.password:
        return address
    return urlunsplit(parts._replace(netloc=f"{parts.username}:***@{parts.netloc.rpartition('@')[2]}"))


def _known_view_url(place: str) -> str:
    """The template of the page of a version, for the hosts whose addresses are known."""
    if place.startswith("git@"):
        place = "https://" + place.removeprefix("git@").replace(":", "/", 1)
    parts = urlsplit(place.removesuffix(".git"))
    host = parts.hostname or ""
    base = f"https://{host}{parts.path}"
    for known, path in (("github.com", "tree"), ("gitlab.com", "-/tree"), ("bitbucket.org", "src")):
        if host == known or host.endswith(f".{known}"):
            return f"{base}/{path}/{{version}}/{{subdir}}"
    return ""
