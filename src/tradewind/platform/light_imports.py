"""Imports msgspec without typing_extensions: saves a megabyte and start time. Only for processes that run no user code.

A service imports this module first. msgspec uses typing_extensions if it can be imported, otherwise typing, which has the same
names since Python 3.11. A later import of typing_extensions works as usual.
"""

from __future__ import annotations

import sys

if "msgspec" not in sys.modules and "typing_extensions" not in sys.modules:
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # makes its import fail
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]
