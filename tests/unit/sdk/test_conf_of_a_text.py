"""Settings of their own: `AirflowConfigParser(default_config=…)`, as tests and plugins create them."""

from __future__ import annotations

import configparser

import pytest

import tradewind.airflow  # noqa: F401 (activates the namespace)
from tradewind.sdk.conf import conf


def test_settings_from_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.configuration import AirflowConfigParser

    parser = AirflowConfigParser(default_config="[Ours]\nlimit = 3\nis_on = True\ntext = 100%\n")
    assert (parser.getint("ours", "limit"), parser.getboolean("ours", "is_on"), parser.get("ours", "text")) == (3, True, "100%")
    assert parser.options("ours") == ["is_on", "limit", "text"]
    assert {"core", "ours"} <= set(parser.sections())
    monkeypatch.setenv("AIRFLOW__OURS__LIMIT", "4")
    assert parser.getint("ours", "limit") == 4, "the environment is stronger"
    parser.read_dict({"ours": {"more": 1}})
    assert parser.get("ours", "more") == "1"
    assert not conf.has_option("ours", "text"), "the settings of the process stay as they are"
    with pytest.raises(configparser.Error):
        parser.read_string("no section")
