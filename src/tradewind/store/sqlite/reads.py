"""Verbs that only look: lists for people, with Airflow 3's field names."""

from __future__ import annotations

from tradewind.store.sqlite.runs import RunVerbs


class ReadVerbs(RunVerbs):
    """See `store.port.Store` for what each verb promises."""
