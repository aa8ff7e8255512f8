"""Builds the web page before a wheel is made, so that an installed Tradewind needs no Node."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WITHOUT = "TRADEWIND_BUILD_WITHOUT_PAGE"
SECONDS = 1200


class PageBuildHook(BuildHookInterface[Any]):
    """An editable installation uses the page of the checkout (`make ui`)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or os.environ.get(WITHOUT):
            return
        done = subprocess.run([sys.executable, "ui/build.py"], cwd=self.root, check=False, timeout=SECONDS)
        if done.returncode:
            raise RuntimeError(
                f"The web page could not be built; the message above says why. To build a wheel without it: {WITHOUT}=1"
            )
