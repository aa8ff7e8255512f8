"""Starts the parser, and parses folders once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tradewind.platform.clock import SystemClock
from tradewind.platform.loop import Loop

if TYPE_CHECKING:
    from tradewind.parser.config import ParserConfig
    from tradewind.parser.parse_result import FileOutcome
    from tradewind.settings import Settings
    from tradewind.wire.commands import RegisterPlugins
    from tradewind.wire.messages import Lookup, RunnerAnswer

from tradewind.cli.compose.bundles import (
    DAGS_BUNDLE,
    EXAMPLES_BUNDLE,
    bundle_folders,
    examples_folder,
    read_bundles,
    versioned_bundles,
    watched_bundle,
)
from tradewind.cli.compose.metrics import service_meter
from tradewind.cli.compose.service_process import do_nothing, reporting_progress
from tradewind.cli.compose.user_code import prepare_for_user_code, user_settings


def parser_config(settings: Settings, folder: str, bundle: str, only: str = "") -> ParserConfig:
    from tradewind.parser.config import ParserConfig

    core, parser = settings.core, settings.parser
    return ParserConfig(
        folder=folder,
        bundle=bundle,
        bundles={DAGS_BUNDLE: settings.paths.dags, **bundle_folders(settings)},
        versioned=versioned_bundles(settings),
        refresh_interval=settings.bundles.refresh_interval_us,
        fetch_timeout=settings.bundles.fetch_timeout_us,
        bundle_bytes_max=settings.bundles.max_mb * 1024 * 1024 or None,
        only=only,
        plugins_folder=settings.paths.plugins if bundle != EXAMPLES_BUNDLE else "",
        scheduler_socket=settings.paths.scheduler_socket,
        processes=parser.processes,
        timeout=parser.timeout_us,
        memory_limit=parser.memory_limit_mb * 1024 * 1024,
        rescan_interval=parser.rescan_interval_us,
        dynamic_interval=parser.dynamic_interval_us,
        max_tasks_per_dag=parser.max_tasks_per_dag,
        defaults=core.definition_defaults(settings.bundles.disable_versioning, settings.bundles.rerun_with_latest_version),
        user_settings=user_settings(settings),
    )


def run_parser(
    settings: Settings, alive: Callable[[], None] = do_nothing, passes: int = 0, passes_done: Callable[[], None] = do_nothing
) -> None:
    """Run the parser until SIGTERM. It calls `passes_done` when it has read every file `passes` times (0: never)."""
    import msgspec  # lazy import: see above

    from tradewind.parser.main import main

    prepare_for_user_code(settings)
    loop = Loop(SystemClock())
    with reporting_progress(settings, "parser", loop, alive):
        bundle, folder, only = watched_bundle(settings)
        config = msgspec.structs.replace(parser_config(settings, folder, bundle, only), all_bundles=read_bundles(settings))
        with service_meter(settings) as meter:
            main(config, loop, passes, passes_done, meter, settings.scheduler.pool_metrics_interval_us)


def parse_bundle(settings: Settings, folder: str, bundle: str) -> list[FileOutcome]:
    """Parse all DAG files of a folder, in child processes without credentials."""
    from tradewind.parser.parse_once import parse_folder

    prepare_for_user_code(settings)
    return parse_folder(parser_config(settings, folder, bundle), answer=_answers(settings))


def load_plugins(settings: Settings) -> RegisterPlugins:
    """Load all plugins in a child process without credentials. Returns the command that stores their list."""
    from tradewind.parser.parse_once import read_plugins

    prepare_for_user_code(settings)
    return read_plugins(parser_config(settings, settings.paths.dags, DAGS_BUNDLE), _answers(settings))


def _answers(settings: Settings) -> Callable[[Lookup], RunnerAnswer]:
    def look_up(question: Lookup) -> RunnerAnswer:
        from tradewind.cli.lookups import from_database  # lazy import: few DAG files look anything up

        return from_database(settings, question)

    return look_up


def register_examples(settings: Settings) -> None:
    """Parse the shipped examples and register them with the running scheduler, once: they change only with a release.

    Raises:
        Unreachable: no scheduler is running.
    """
    from tradewind.client.control import ControlClient
    from tradewind.parser.parse_once import dag_files
    from tradewind.parser.registration import register_command
    from tradewind.wire import commands as c

    folder = examples_folder()
    if folder is None:
        return
    with ControlClient(settings.paths.scheduler_socket, "examples") as control:
        count = len(dag_files(parser_config(settings, folder, EXAMPLES_BUNDLE)))
        control.call(c.NoteUnreadFiles(EXAMPLES_BUNDLE, count, count))
        try:
            outcomes = parse_bundle(settings, folder, EXAMPLES_BUNDLE)
            known = control.call(c.KnownFiles(EXAMPLES_BUNDLE))
            gone = sorted(set(known) - {outcome.file for outcome in outcomes})
            if gone:
                control.call(c.ForgetFiles(EXAMPLES_BUNDLE, gone))
            control.call(register_command(outcomes))
        finally:
            control.call(c.NoteUnreadFiles(EXAMPLES_BUNDLE, count, 0))
