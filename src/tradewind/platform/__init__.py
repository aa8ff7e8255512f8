"""Clocks, the event loop, processes and private files: what Tradewind needs from the operating system.

Only `linux.py` uses /proc, prctl and pidfds; `HAVE_LINUX` says whether it can be imported. On other systems tasks run in new
interpreters, there are no subreapers, and fewer orphaned processes are found.
"""

import sys

HAVE_LINUX = sys.platform == "linux"
