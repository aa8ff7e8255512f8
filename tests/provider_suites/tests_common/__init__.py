"""Fixtures and helpers that the unit tests of provider packages import as `tests_common`.

Airflow's own package of this name is not published. This one offers the names that the tests use without a metadata database;
tests marked `db_test` need Airflow's database and are not run.
"""

from __future__ import annotations

RUNNING_TESTS_AGAINST_AIRFLOW_PACKAGES = True
"""The packages are installed, not read from Airflow's repository."""
