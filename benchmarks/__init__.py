"""What the machine can do, and what Tradewind makes of it, measured in one run. `python -m benchmarks --help`."""
