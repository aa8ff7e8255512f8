"""Specifications as JSON lines on standard input, answers as JSON lines on standard output."""

from __future__ import annotations

from tests.conformance.adapter import main

main()
