"""The fixtures of `tradewind.testing` for the whole suite, as users' suites have them by its entry point."""

from __future__ import annotations

pytest_plugins = ["tradewind.testing.plugin"]
