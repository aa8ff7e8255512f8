"""The commands that provider packages describe, read by Airflow's parser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tradewind.airflow  # noqa: F401  serves the namespace
from tradewind.provider_packages import offers

from airflow.cli import cli_parser  # isort: skip
from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ARG_YES, ActionCommand, Arg, GroupCommand  # isort: skip


def clean(args: Any) -> str:
    return f"cleaned {args.namespace}"


def commands() -> list[Any]:
    clean_command = ActionCommand(
        name="clean",
        help="Delete old pods",
        func=clean,
        args=(Arg(("--namespace",), required=True), ARG_YES, ARG_VERBOSE, ARG_OUTPUT),
    )
    return [GroupCommand(name="pods", help="Pods", subcommands=(clean_command,))]


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(offers, "cli_commands", lambda: [f"{__name__}.commands"])
    cli_parser.get_parser.cache_clear()
    yield cli_parser.get_parser()
    cli_parser.get_parser.cache_clear()


def test_a_command_of_a_package_is_parsed(parser: Any) -> None:
    args = parser.parse_args(["pods", "clean", "--namespace", "n", "-y", "--output", "json"])
    assert (args.yes, args.verbose, args.output) == (True, False, "json")
    assert args.func(args) == "cleaned n"


@pytest.mark.parametrize("words", [["pods", "clean"], ["pods"], ["pods", "clean", "--namespace", "n", "--output", "xml"]])
def test_a_wrong_command_ends_with_2(parser: Any, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words)
    assert ended.value.code == 2
    assert "error" in capsys.readouterr().err
