"""`tradewind dag-processor`."""

from __future__ import annotations

import click

from tradewind.cli.daemon import Background, background_options, run_service, subdir_option, without_num_runs


@click.command("dag-processor")
@click.option("-B", "--bundle-name", hidden=True)
@without_num_runs
@subdir_option
@background_options
def dag_processor(bundle_name: str | None, background: Background, subdir: str | None) -> None:
    """Run the parser of DAG files until Ctrl-C or SIGTERM."""
    from tradewind.cli.compose.bundles import DAGS_BUNDLE
    from tradewind.cli.compose.parser import run_parser

    if bundle_name not in (None, DAGS_BUNDLE):
        raise click.UsageError(f"there is only one bundle to parse, {DAGS_BUNDLE}; leave out --bundle-name")
    run_service("parser", run_parser, background, {}, subdir)
