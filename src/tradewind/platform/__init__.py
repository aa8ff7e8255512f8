"""Processes: the few things of Linux that Tradewind stands on, each behind a name that says what it does.

Everything that knows /proc, prctl or pidfds is in `linux.py`; elsewhere `processes.HAVE_LINUX` says whether it may be used. On
other systems tasks run in freshly started interpreters, without subreapers, and a sweep finds less.
"""

import sys

HAVE_LINUX = sys.platform == "linux"
