"""Plugins of the examples."""
