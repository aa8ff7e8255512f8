"""Import this first in a long-lived process of ours, where no user's code runs: a megabyte less, and a quicker start.

msgspec takes what it needs from typing_extensions if that can be imported, and else from typing, where all of it is since
Python 3.11. Whoever imports typing_extensions later gets it.
"""

from __future__ import annotations

import sys

if "msgspec" not in sys.modules and "typing_extensions" not in sys.modules:
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # cannot be imported
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]
