"""Writes `ui/src/api/schema.d.ts`: the types of the web page's client, from the OpenAPI document of the application.

python docs/generate_page_types.py   (needs the libraries of the page: `make ui`)

The file is not kept in the repository: `make lint-ui` writes it, so the page is always checked against the present API.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from tradewind.api.app import create_app
from tradewind.api.config import ApiConfig
from tradewind.api.openapi import document

UI = Path(__file__).parent.parent / "ui"
TYPES = UI / "src" / "api" / "schema.d.ts"
SECONDS_MAX = 120


def openapi() -> bytes:
    """The OpenAPI document as JSON."""
    config = ApiConfig(database="", scheduler_socket="", logs="", passwords="", jwt_key="", accounts="")
    return json.dumps(document(create_app(config)), ensure_ascii=False).encode()


def write() -> None:
    """Write the file. Raises CalledProcessError: the generator failed."""
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder, "openapi.json")
        given.write_bytes(openapi())
        command = [str(UI / "node_modules" / ".bin" / "openapi-typescript"), str(given), "--output", str(TYPES)]
        subprocess.run(command, check=True, timeout=SECONDS_MAX, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    write()
