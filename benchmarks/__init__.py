"""Measures the limits of the machine, and Tradewind on it, in one run. `python -m benchmarks --help`."""
