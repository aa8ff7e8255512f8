"""`python -m tradewind`: the command line."""

from __future__ import annotations

from tradewind.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
