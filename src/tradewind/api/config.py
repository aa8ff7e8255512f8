"""What the API needs to be told: plain values, composed by whoever starts it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiConfig:
    """Absolute paths and numbers. The field names are those that `python -m tradewind.api.serve` takes as JSON."""

    database: str
    scheduler_socket: str
    logs: str
    passwords: str
    jwt_key: str
    dags_folder: str = ""
    fernet_key_file: str = ""
    """With `fernet_key`: what variables are decrypted with. Both empty: values are not shown."""
    fernet_key: str | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    """0: any free one; the real one is told through `ready`."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed."""
    token_seconds: int = 24 * 3600
    page_limit_max: int = 100
    busy_timeout_ms: int = 5_000
    command_timeout: float = 30.0
    threads: int = 4
    """Requests worked on at the same time; each thread holds one connection to the database and one to the scheduler."""
    body_max_bytes: int = 4 * 1024 * 1024
    progress: dict[str, str] = field(default_factory=dict)
    """Files in which the worker host (`host`) and the parser (`parser`) say that their loops turn."""
    unhealthy_after: int = 30_000_000
    """Microseconds: one that has said nothing for so long is unhealthy."""
