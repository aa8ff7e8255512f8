"""Tests one connection in a separate process: `python -m tradewind.execution.connection_test`.

The API starts this process. It reads the connection from its standard input, calls the hook of its type, and prints the result as
JSON. A hook is third-party code, so this process has neither a connection to the database nor the key of stored secrets.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from tradewind.sdk.variables import Connection


def test(fields: dict[str, Any]) -> tuple[bool, str]:
    """Return (whether the connection works, a sentence). If the hook raises an error, its text is the sentence."""
    connection = Connection(**fields)
    # hooks look the connection up by its id: in the environment first
    os.environ[f"TRADEWIND_CONN_{str(connection.conn_id).upper()}"] = connection.as_json()
    try:
        hook = connection.get_hook()
        if not hasattr(hook, "test_connection"):
            return False, f"Hook {type(hook).__name__} doesn't implement or inherit test_connection method"
        works, sentence = hook.test_connection()
    except Exception as error:  # every exception of a hook is a test result
        return False, str(error) or type(error).__name__
    return bool(works), str(sentence)


def main() -> None:
    """Read the fields of the connection as JSON, and print `[works, sentence]`. Output of the hook goes to stderr."""
    result = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    json.dump(test(json.load(sys.stdin)), result)
    result.flush()


if __name__ == "__main__":
    main()
