"""Specifications as JSON lines on standard input, answers as JSON lines on standard output."""

from __future__ import annotations

import json
import sys

from tests.conformance.story import answer

for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))))
