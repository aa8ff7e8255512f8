"""Starts the web server."""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from tradewind.cli.worker_hosts import with_worker_hosts
from tradewind.model.moments import SECOND
from tradewind.platform import HAVE_LINUX
from tradewind.platform.clock import SystemClock
from tradewind.platform.progress import Stamp, stamp_interval, unhealthy_after

if TYPE_CHECKING:
    from tradewind.settings import Settings

from tradewind.cli.compose.bundles import bundle_folders, versioned_bundles
from tradewind.cli.compose.log_uploads import remote_options, remote_url
from tradewind.cli.compose.service_process import do_nothing, log_stream


def run_api(settings: Settings, ready: Callable[[str], None] | None = None, alive: Callable[[], None] = do_nothing) -> None:
    """Run the web server until SIGTERM.

    Args:
        ready: called with the address when the server accepts requests.
    """
    from tradewind.api.config import ApiConfig
    from tradewind.api.serve import main
    from tradewind.cli.login_settings import ldap_of, oidc_of
    from tradewind.client.service_connection import ServiceConnection
    from tradewind.settings import OPTIONS

    api, paths = settings.api, settings.paths
    config = ApiConfig(
        database=settings.store,
        scheduler_socket=paths.scheduler_socket,
        logs=paths.logs,
        remote_logs=remote_url(settings),
        remote_logs_options=remote_options(settings),
        accounts=paths.accounts,
        passwords=paths.passwords,
        jwt_key=paths.jwt_key,
        dags_folder=paths.dags,
        bundle_folders=bundle_folders(settings),
        versioned=versioned_bundles(settings),
        fernet_key_file=paths.fernet_key,
        fernet_key=settings.secrets.fernet_key,
        spills=paths.xcom,
        test_connection=api.test_connection == "enabled",
        state_retention_days=settings.state_store.default_retention_days,
        options=_shown_options(settings),
        airflow_names={name: (option.section, option.key) for option in OPTIONS for name in option.airflow},
        host=api.host,
        port=api.port,
        trusted_proxies=tuple(one.strip() for one in (api.trusted_proxies or "").split(",") if one.strip()),
        base_url=(api.base_url or "").rstrip("/"),
        token_seconds=round(api.token_hours * 3600),
        session_seconds=round(api.session_hours * 3600),
        session_idle_seconds=round(api.session_idle_hours * 3600),
        password_min_length=api.password_min_length,
        oidc=oidc_of(settings),
        ldap=ldap_of(settings),
        page_limit_max=api.page_limit_max,
        progress={kind: paths.progress(kind) for kind in with_worker_hosts(("host", "parser"), settings.runner.worker_hosts)},
        unhealthy_after=unhealthy_after(settings.core.stall_limit_us),
    )
    if HAVE_LINUX:
        from tradewind.platform import linux

        linux.set_name("tw-api")
    faulthandler.register(signal.SIGQUIT, log_stream())
    stamp = Stamp(paths.progress("api"), SystemClock(), alive)
    connection = ServiceConnection(paths.scheduler_socket, "api", "ApiServerJob")
    connection.start()
    try:
        main(config, ready, heartbeat=(stamp.stamp, stamp_interval(settings.core.stall_limit_us) / SECOND))
    finally:
        connection.stop()
        stamp.end()


def _shown_options(settings: Settings) -> dict[str, dict[str, str]]:
    """All settings by section. Secrets are masked."""
    found: dict[str, dict[str, str]] = {}
    for one in settings.listing():
        section, _, option = one.name.partition(".")
        found.setdefault(section, {})[option] = one.value
    return found
