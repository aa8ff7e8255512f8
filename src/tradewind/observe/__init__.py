"""Logs of Tradewind's own processes, and failpoints for tests."""
