"""Unit tests of provider packages, run unmodified from their source distributions (see `test_suites.py`)."""
