"""Secrets in every form in which they may appear, and which texts of an environment are secrets."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tradewind.model import secret_names
from tradewind.model.secret_mask import FORMS_MAX, SecretMask, secrets_of_environment
from tradewind.sdk import secret_registry
from tradewind.sdk.mask_secret import mask_secret, redact, should_hide_value_for_key
from tradewind.sdk.variables import Connection

PASSWORD = 'p@ss/w "ö\\rd'
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    "shown",
    [
        PASSWORD,
        quote(PASSWORD, safe=""),
        quote(PASSWORD),
        json.dumps(PASSWORD),
        json.dumps(PASSWORD, ensure_ascii=False),
        repr([PASSWORD]),
    ],
    ids=["plain", "in a URI", "in a path", "JSON", "JSON in UTF-8", "repr"],
)
def test_a_secret_is_found_in_every_form(shown: str) -> None:
    answer = SecretMask([PASSWORD]).text(f"<{shown}>")
    assert "***" in answer
    assert "ss" not in answer


def test_a_key_of_several_lines_is_hidden_line_by_line() -> None:
    mask = SecretMask([KEY])
    assert [mask.text(line) for line in KEY.splitlines()] == [
        "-----BEGIN PRIVATE KEY-----",
        "***",
        "***",
        "-----END PRIVATE KEY-----",
    ]
    assert mask.text(json.dumps({"key": KEY})) == '{"key": "***"}'


def test_the_uri_of_a_connection_shows_no_password() -> None:
    connection = Connection(conn_id="db", conn_type="postgres", host="h", login="me", password=PASSWORD)
    assert "ss" not in SecretMask([PASSWORD]).text(connection.get_uri()).removeprefix("postgres")


def test_short_and_common_texts_stay_as_in_airflow() -> None:
    mask = SecretMask(["abcd", "airflow", ""])
    assert not mask
    assert mask.text("abcd airflow") == "abcd airflow"


def test_the_longest_is_hidden_whole_and_the_number_of_forms_is_bounded() -> None:
    assert SecretMask(["hunter2", "hunter2-and-more"]).text("hunter2-and-more") == "***"
    many = SecretMask(f"secret-number-{number}" for number in range(FORMS_MAX * 2))
    assert many.text("secret-number-1 x") == "*** x"
    assert len(many._forms) == FORMS_MAX


def test_nothing_new_is_no_new_pattern() -> None:
    mask = SecretMask(["hunter2"])
    assert mask.plus(["hunter2"]) is mask


@pytest.mark.parametrize(
    ("name", "value", "secret", "plain"),
    [
        (
            "AIRFLOW_CONN_DB",
            "postgres://me:hunter%402@h:1/x?sslmode=require&api_key=k-e-y-1",
            ["hunter@2", "hunter%402", "k-e-y-1"],
            "require",
        ),
        (
            "TRADEWIND_CONN_DB",
            '{"conn_type": "x", "password": "hunter22", "extra": {"token": "t-o-k-e-n"}}',
            ["hunter22", "t-o-k-e-n"],
            "conn_type",
        ),
        ("AIRFLOW_VAR_DB_PASSWORD", "hunter22", ["hunter22"], ""),
        ("AIRFLOW_VAR_CONFIG", '{"deep": [{"api_token": "hunter22", "region": "eu-west"}]}', ["hunter22"], "eu-west"),
        ("AIRFLOW__CORE__FERNET_KEY", "hunter22", ["hunter22"], ""),
        ("AIRFLOW_VAR_BUCKET", "in-the-clear", [], "in-the-clear"),
        ("TOKENIZERS_PARALLELISM", "false", [], "false"),
    ],
)
def test_secrets_of_an_environment(name: str, value: str, secret: list[str], plain: str) -> None:
    mask = SecretMask(secrets_of_environment({name: value}))
    for text in secret:
        assert mask.text(f"<{text}>") == "<***>"
    assert plain in mask.text(value)


# --- the settings, and what user code may call ------------------------------------------------------------------------------


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The settings of this process, and what it knows, are put back."""
    monkeypatch.setattr(secret_registry, "_mask", None)
    yield
    secret_names.configure()


@pytest.mark.usefixtures("names")
def test_more_names_of_the_deployment_count_in_every_form() -> None:
    assert not secret_names.is_secret("customer-iban")
    secret_names.configure_from({secret_names.NAMES_VARIABLE: " IBAN , home-address,, ", secret_names.HIDE_VARIABLE: "true"})
    assert secret_names.is_secret("customer-iban")
    assert secret_names.is_secret("HOME ADDRESS")
    assert secret_names.is_secret("db_password")
    assert not secret_names.is_secret("region")
    assert secret_names.masked({"iban": "DE00", "region": "eu"}) == {"iban": "***", "region": "eu"}


@pytest.mark.usefixtures("names")
def test_without_hiding_only_passwords_and_secret_settings_are_secret() -> None:
    secret_names.configure("iban", hide=False)
    assert not secret_names.is_secret("db_password")
    environment = {
        "AIRFLOW_VAR_DB_PASSWORD": "of-variable",
        "AIRFLOW_CONN_DB": "x://me:of-connection@h",
        "AIRFLOW__API_AUTH__JWT_SECRET": "of-setting",
    }
    assert sorted(secrets_of_environment(environment)) == ["of-connection", "of-connection", "of-setting"]


@pytest.mark.usefixtures("names")
def test_redact_hides_what_is_known_and_what_stands_under_a_secret_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_VAR_DB_PASSWORD", "of-environment")
    mask_secret("named-here")
    secret_registry.add("told-here", True)
    secret_registry.add("no-secret", False)

    class Place(enum.Enum):
        HERE = "at named-here"

    value = {
        "text": "named-here told-here no-secret of-environment",
        "list": ["named-here", 7, None],
        "set": {"told-here"},
        "enum": Place.HERE,
        "password": {"deep": ["any text", 7]},
    }
    assert redact(value) == {
        "text": "*** *** no-secret ***",
        "list": ["***", 7, None],
        "set": ("***",),
        "enum": "at ***",
        "password": {"deep": ["***", 7]},
    }
    assert redact("plain", "api_key", replacement="[hidden]") == "[hidden]"
    assert redact("of named-here", replacement=r"\1") == r"of \1"
    assert redact([[["named-here", {"token": "x"}]]], max_depth=1) == [[["named-here", {"token": "***"}]]]


def test_names_are_judged_as_by_airflow() -> None:
    assert should_hide_value_for_key("google_api-key")
    assert not should_hide_value_for_key("keys")
    assert not should_hide_value_for_key(None)
