"""Settings of sections whose name has a dot, such as those of provider packages: `providers.jdbc`."""

from __future__ import annotations

import pytest

from tradewind.sdk.conf import conf


def test_a_dot_is_an_underscore_in_the_name_of_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Airflow names them. A shell cannot set a variable whose name has a dot."""
    monkeypatch.setenv("AIRFLOW__PROVIDERS_JDBC__ALLOW_DRIVER_PATH_IN_EXTRA", "TRUE")
    assert conf.getboolean("providers.jdbc", "allow_driver_path_in_extra", fallback=False)
    assert conf.getsection("providers.jdbc") == {"allow_driver_path_in_extra": True}
