"""Marks of tests."""

from __future__ import annotations

from typing import Any

import pytest


def __getattr__(name: str) -> Any:
    return pytest.mark.skipif(False, reason=name)
