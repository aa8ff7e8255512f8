"""The configuration of the API process, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field

from tradewind.bundles.specs import VersionedBundle


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcConfig:
    """An identity provider (OpenID Connect)."""

    issuer: str
    client_id: str
    client_secret: str | None = None
    """None: a public client, which only PKCE protects."""
    label: str
    scopes: str
    name_claim: str
    groups_claim: str
    groups: dict[str, tuple[str, ...]]
    """See `auth.group_rights`."""
    default_role: str
    """Empty: a person without one of the groups may not log in."""
    create_accounts: bool = True
    ca_file: str | None = None
    """None: the certificates of the system are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LdapConfig:
    """A directory that checks passwords."""

    url: str
    start_tls: bool
    ca_file: str | None = None
    bind_dn: str | None = None
    """None: an anonymous search."""
    bind_password: str | None = None
    search_base: str
    user_filter: str
    name_attribute: str
    groups_attribute: str
    group_search_base: str | None = None
    group_filter: str
    groups: dict[str, tuple[str, ...]]
    default_role: str
    create_accounts: bool = True
    timeout: float = 5.0
    """Seconds for a connection, and for each answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiConfig:
    """Paths are absolute. `python -m tradewind.api.serve` takes the same fields as JSON."""

    database: str
    scheduler_socket: str
    logs: str
    accounts: str
    """The database of accounts."""
    passwords: str
    """The file of users of earlier releases. Its users are imported."""
    jwt_key: str
    remote_logs: str = ""
    """Address to which task logs are uploaded; empty: they are not uploaded."""
    remote_logs_options: str | None = None
    dags_folder: str = ""
    bundle_folders: dict[str, str] = field(default_factory=dict)
    """The folders of bundles other than the DAG folder, by name."""
    versioned: dict[str, VersionedBundle] = field(default_factory=dict)
    """The bundles that have versions, by name."""
    fernet_key_file: str = ""
    """This file or `fernet_key` holds the key that decrypts variables. Both empty: values are not shown."""
    fernet_key: str | None = None
    spills: str = ""
    """Folder of large XComs."""
    test_connection: bool = False
    """Whether clients may have a connection tested: a hook then runs on this machine."""
    state_retention_days: int = 30
    """Days after which a value in the state store of a task expires, unless the request says otherwise. 0: never."""
    options: dict[str, dict[str, str]] = field(default_factory=dict)
    """Section → option → value as text, for people. Secrets are masked."""
    airflow_names: dict[str, tuple[str, str]] = field(default_factory=dict)
    """`section.option` of Airflow → section and option here."""
    host: str = "127.0.0.1"
    port: int = 8080
    """0: any free port; `ready` is called with the address that has the real port."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks whose headers `X-Forwarded-For` and `X-Forwarded-Proto` are trusted."""
    base_url: str = ""
    """The address in browsers, if it differs from the address in requests: "https://tradewind.example.com"."""
    token_seconds: int = 24 * 3600
    session_seconds: int = 7 * 24 * 3600
    session_idle_seconds: int = 12 * 3600
    password_min_length: int = 8
    oidc: OidcConfig | None = None
    ldap: LdapConfig | None = None
    page_limit_max: int = 100
    busy_timeout_ms: int = 5_000
    command_timeout: float = 30.0
    threads: int = 4
    """Requests handled at the same time. Each thread has one connection to the database and one to the scheduler."""
    body_max_bytes: int = 4 * 1024 * 1024
    progress: dict[str, str] = field(default_factory=dict)
    """Files in which the worker host (`host`) and the parser (`parser`) report the progress of their loops."""
    unhealthy_after: int = 30_000_000
    """A process without progress for this time is unhealthy, microseconds."""
