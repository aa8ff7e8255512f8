"""Airflow 2's name for `tradewind.sensors.time`."""

from __future__ import annotations

from tradewind.sensors.time import TimeSensor, TimeSensorAsync

__all__ = ["TimeSensor", "TimeSensorAsync"]
