"""A script for another interpreter, started by its path: calls one function and writes the result. Python 3.8 and newer.

    python interpreter_call.py FOLDER

It reads from the folder: `function.py` (the source of the function), `call.json` (its name, the serializer, string_args) and
`arguments` (args and kwargs, serialized). It writes `result` (serialized), or after an error `problem` (one line) with exit code 1.
"""

import __future__

import importlib
import json
import os
import sys
import traceback


def main(folder):  # type: ignore[no-untyped-def]
    """Make the call. Returns the exit code."""
    with open(os.path.join(folder, "call.json"), encoding="utf-8") as file:
        call = json.load(file)
    path = os.path.join(folder, "function.py")
    with open(path, encoding="utf-8") as file:
        source = file.read()
    serializer = importlib.import_module(call["serializer"])
    with open(os.path.join(folder, "arguments"), "rb") as file:
        args, kwargs = serializer.load(file)
    namespace = {"__name__": "__main__", "virtualenv_string_args": call["string_args"]}
    step = "call"
    try:
        # annotations may use names that only the DAG file imports
        exec(compile(source, path, "exec", __future__.annotations.compiler_flag, dont_inherit=True), namespace)
        result = namespace[call["function"]](*args, **kwargs)
        if call["is_async"]:
            import asyncio

            result = asyncio.run(result)
        step = "result"
        data = serializer.dumps(result)
    except Exception as error:
        traceback.print_exc()
        message = f"{type(error).__name__}: {error}"
        if step == "result":
            message = "the result cannot be serialized with {}: {}".format(call["serializer"], message)
        with open(os.path.join(folder, "problem"), "w", encoding="utf-8") as file:
            file.write(message)
        return 1
    with open(os.path.join(folder, "result"), "wb") as file:
        file.write(data)
    return 0


if __name__ == "__main__":
    sys.path[0] = sys.argv[1]  # replace the folder of this package
    sys.exit(main(sys.argv[1]))  # type: ignore[no-untyped-call]
