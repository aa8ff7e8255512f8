"""Small things every long-lived part stands on: clocks, backoff, the boot id, private files."""
