"""`tradewind airflow …`: every command and option of three genuine releases is translated or answered."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.unit.cli.conftest import Run
from tradewind.cli.airflow_command_table import FORMS, Form
from tradewind.cli.airflow_translation import find_form, translate
from tradewind.cli.commands.airflow import messages, options_of
from tradewind.model.errors import NotYetSupported, WrongArgument


class Genuine(NamedTuple):
    """A command of a release of Airflow."""

    release: str
    words: list[str]
    options: list[tuple[list[str], int]]
    """Spellings, and how many words follow."""


def genuine_commands() -> list[Genuine]:
    found = []
    for line in Path(__file__).with_name("airflow_commands.tsv").read_text().splitlines():
        if not line.startswith("#"):
            release, command, options = line.split("\t")
            pairs = [one.rpartition(":") for one in options.split()]
            found.append(Genuine(release, command.split(), [(names.split(","), int(count)) for names, _, count in pairs]))
    return found


COMMANDS = genuine_commands()


def test_the_list_has_three_releases() -> None:
    assert {one.release for one in COMMANDS} == {"1.10.15", "2.11.0", "3.3.2"}
    assert len(COMMANDS) > 250


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: f"{one.release} {' '.join(one.words)}")
def test_every_command_and_option_of_airflow_is_translated_or_answered(command: Genuine) -> None:
    form, _ = find_form(command.words if command.words != ["roles"] else [*command.words, "--list"])
    assert form.tradewind or form.sentence
    if not form.tradewind:
        return
    ours = options_of(form.tradewind)
    for names, count in command.options:
        for name in names:
            if name in form.when:
                continue
            line = [*command.words, name, *["1"] * count]
            try:
                words = translate(line, lambda _: ours).words
            except NotYetSupported:
                continue
            given = [word for word in words[len(form.tradewind.split()) :] if word not in find_form(line)[0].added]
            unknown = [word for word in given if word.startswith("-") and word != "--"]
            assert [word for word in unknown if word.partition("=")[0] not in ours] == [], f"{name} of {form.airflow}"


def test_every_form_names_a_command_or_has_a_sentence() -> None:
    for form in FORMS:
        assert bool(form.tradewind) != bool(form.sentence), form
        assert 1 <= form.since <= form.until <= 3, form
        if form.tradewind:
            options_of(form.tradewind)
    last: dict[str, Form] = {}
    for form in FORMS:
        assert form.airflow not in last or last[form.airflow].when, f"{form} is never reached"
        last[form.airflow] = form


@pytest.mark.spec("S63")
@pytest.mark.parametrize(
    ("airflow", "ours"),
    [
        ("list_tasks etl --tree -sd /dags", "tasks list --tree etl"),
        ("run etl load 2024-01-01 --local --raw --pickle 7 -int --job_id 3", "tasks run etl load 2024-01-01"),
        ("run etl load 2024-01-01 -A -f --pool big", "tasks run -A -f --pool big etl load 2024-01-01"),
        ("test etl load 2024-01-01 -tp '{}'", "tasks test --task-params '{}' etl load 2024-01-01"),
        (
            "backfill etl -s 2024-01-01 -e 2024-01-05 --rerun_failed_tasks -x",
            "backfill create --from-date 2024-01-01 --to-date 2024-01-05 --reprocess-behavior failed --wait --dag-id=etl",
        ),
        (
            "backfill -s 2024-01-01 etl",
            "backfill create --from-date 2024-01-01 --to-date 2024-01-01 --accept-depends-on-past --wait --dag-id=etl",
        ),
        (
            "dags backfill etl -s 1 -e 2 --dry-run",
            "backfill create --from-date 1 --to-date 2 --dry-run --accept-depends-on-past --dag-id=etl",
        ),
        ("backfill create --dag-id etl --from-date 1 --to-date 2", "backfill create --dag-id etl --from-date 1 --to-date 2"),
        ("clear -s 2024-01-01 -e 2024-01-02 -t lo -c etl", "tasks clear -s 2024-01-01 -e 2024-01-02 -t lo --yes etl"),
        ("clear --start 2024-01-01 --only_failed -dx etl", "tasks clear --start-date 2024-01-01 --only-failed --dag-regex etl"),
        ("clear -fd etl", "tasks clear -f -d etl"),
        ("webserver -p 8080 -hn 0.0.0.0 -w 4 -D", "api-server -p 8080 --host 0.0.0.0 -D"),
        ("webserver -p8080", "api-server -p 8080"),
        ("scheduler -D -n 5 --pid /tmp/p", "scheduler -D -n 5 --pid /tmp/p"),
        ("worker -q a,b -c 4 -cn w1", "celery worker -q a,b -c 4 --name w1"),
        ("celery worker --queues a -a 8,2 --without-mingle", "celery worker --queues a -a 8,2 --without-mingle"),
        ("trigger_dag etl -r r1 -c '{}' -e 2024-01-01", "dags trigger -r r1 -c '{}' -e 2024-01-01 etl"),
        ("dag_state etl 2024-01-01", "dags state etl 2024-01-01"),
        ("variables -s key value", "variables set key value"),
        ("variables --set key -1", "variables set -- key -1"),
        ("variables -g key -d none", "variables get -d none key"),
        ("variables", "variables list"),
        ("variables list", "variables list"),
        ("connections --add --conn_id c --conn_uri http://h", "connections add --conn-uri http://h c"),
        ("connections -d --conn_id=c", "connections delete c"),
        ("pool -s etl 5 text", "pools set etl 5 text"),
        ("pool -x etl", "pools delete --yes etl"),
        ("users -c -u ann -r Admin -p x", "users create -u ann -r Admin -p x"),
        ("initdb", "db migrate"),
        ("upgradedb", "db migrate"),
        ("resetdb -y", "db reset -y"),
        ("checkdb", "db check"),
        ("next_execution etl", "dags next-execution etl"),
        ("dags test etl -S /f.py", "dags test --dagfile-path /f.py etl"),
        ("dags list -o json", "dags list -o json"),
    ],
)
def test_command_lines(airflow: str, ours: str) -> None:
    assert translate(airflow.split(), options_of).words == ours.split()


def test_an_option_without_effect_says_why() -> None:
    done = translate(["run", "d", "t", "2024-01-01", "--raw"], options_of)
    assert messages(done) == [
        "`airflow run` runs: tradewind tasks run",
        "--raw has no effect: a task always runs under the worker host of this machine.",
    ]
    assert messages(translate(["dags", "list"], options_of)) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("flower", "tradewind celery flower"),
        ("serve_logs", "web server reads the logs"),
        ("kerberos", "k5start"),
        ("db downgrade", "tradewind db restore"),
        ("backfill d -t x", "tradewind tasks clear"),
    ],
)
def test_what_has_no_meaning_is_answered(words: str, sentence: str) -> None:
    with pytest.raises(NotYetSupported, match=sentence):
        translate(words.split(), options_of)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("lst_dags", "list_dags"),
        ("dags lsit", "'list'"),
        ("dag list", "'dags list'"),
        ("datasets list", "'assets list'"),
        ("task", "'tasks'"),
    ],
)
def test_an_unknown_command_names_the_nearest(words: str, hint: str) -> None:
    with pytest.raises(WrongArgument, match=hint):
        translate(words.split(), options_of)


def test_commands_are_executed_and_their_new_names_go_to_stderr(run: Run, known: Path) -> None:
    done = run("airflow", "list_dags")
    assert done.stdout.splitlines()[-2:] == ["alpha", "beta"]
    assert done.stdout.splitlines()[3] == "DAGS"
    assert done.stderr == "`airflow list_dags` runs: tradewind dags list\n"
    assert run("airflow", "list_tasks", "alpha").stdout.split() == ["one", "three", "two"]
    assert run("airflow", "variables", "-s", "bucket", "s3://x").exit_code == 0
    assert run("airflow", "variables", "-g", "bucket").stdout == "s3://x\n"
    assert run("airflow", "trigger_dag", "beta", "-r", "r").exit_code == 0
    assert run("airflow", "dag_state", "beta", "r").stdout == "queued\n"
    again = run("airflow", "dags", "list", "-o", "json")
    assert again.exit_code == 0
    assert again.stderr == ""


def test_a_command_that_is_not_needed_succeeds_so_that_scripts_continue(run: Run) -> None:
    done = run("airflow", "sync-perm")
    assert done.exit_code == 0
    assert "fixed permissions" in done.stderr


def test_errors_are_those_of_the_command(run: Run, known: Path) -> None:
    done = run("airflow", "tasks", "list", "alhpa")
    assert done.exit_code == 1
    assert "alpha" in done.stderr
    wrong = run("airflow", "list_tasks")
    assert wrong.exit_code == 2
    assert "tradewind tasks list --help" in wrong.stderr


def test_the_overview_lists_every_form(run: Run) -> None:
    text = run("airflow", "--help").stdout
    assert all(form.shown in text for form in FORMS)


def test_a_name_of_airflow_below_tradewind_names_ours(run: Run) -> None:
    done = run("initdb")
    assert done.exit_code == 2
    assert "tradewind db migrate" in done.stderr
    assert "triggerer" in run("triggerer").stderr
