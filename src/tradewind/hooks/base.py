"""The base class of hooks, with Airflow's module name."""

from __future__ import annotations

from tradewind.sdk.variables import BaseHook, Connection

__all__ = ["BaseHook", "Connection"]
