"""Watching our own processes: their log lines, and the places where tests may break them."""
