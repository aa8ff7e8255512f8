"""The configuration of the API process, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiConfig:
    """Paths are absolute. `python -m tradewind.api.serve` takes the same fields as JSON."""

    database: str
    scheduler_socket: str
    logs: str
    passwords: str
    jwt_key: str
    dags_folder: str = ""
    fernet_key_file: str = ""
    """This file or `fernet_key` holds the key that decrypts variables. Both empty: values are not shown."""
    fernet_key: str | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    """0: any free port; `ready` gets the address with the real one."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks whose headers `X-Forwarded-For` and `X-Forwarded-Proto` are trusted."""
    token_seconds: int = 24 * 3600
    page_limit_max: int = 100
    busy_timeout_ms: int = 5_000
    command_timeout: float = 30.0
    threads: int = 4
    """Requests handled at the same time. Each thread has one connection to the database and one to the scheduler."""
    body_max_bytes: int = 4 * 1024 * 1024
    progress: dict[str, str] = field(default_factory=dict)
    """Files in which the worker host (`host`) and the parser (`parser`) say that their loops turn."""
    unhealthy_after: int = 30_000_000
    """Microseconds: a process without progress for so long is unhealthy."""
