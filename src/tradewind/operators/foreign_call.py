"""Run by another interpreter, by its path: calls one function and writes down what it returned. Python 3.8 and newer.

    python foreign_call.py FOLDER

In the folder: `function.py` (the function's source), `call.json` (its name, the serializer, string_args), `arguments` (args and
kwargs, serialized). Written: `result` (serialized), or `problem` (one line) and exit code 1.
"""

import __future__

import importlib
import json
import os
import sys
import traceback


def main(folder):  # type: ignore[no-untyped-def]
    """Make the call; returns the exit code."""
    with open(os.path.join(folder, "call.json"), encoding="utf-8") as file:
        call = json.load(file)
    path = os.path.join(folder, "function.py")
    with open(path, encoding="utf-8") as file:
        source = file.read()
    serializer = importlib.import_module(call["serializer"])
    with open(os.path.join(folder, "arguments"), "rb") as file:
        args, kwargs = serializer.load(file)
    namespace = {"__name__": "__main__", "virtualenv_string_args": call["string_args"]}
    doing = "call"
    try:
        # annotations may name what only the DAG file imports
        exec(compile(source, path, "exec", __future__.annotations.compiler_flag, dont_inherit=True), namespace)
        result = namespace[call["function"]](*args, **kwargs)
        if call["is_async"]:
            import asyncio

            result = asyncio.run(result)
        doing = "result"
        data = serializer.dumps(result)
    except Exception as error:
        traceback.print_exc()
        said = f"{type(error).__name__}: {error}"
        if doing == "result":
            said = "what it returned cannot be handed back with {}: {}".format(call["serializer"], said)
        with open(os.path.join(folder, "problem"), "w", encoding="utf-8") as file:
            file.write(said)
        return 1
    with open(os.path.join(folder, "result"), "wb") as file:
        file.write(data)
    return 0


if __name__ == "__main__":
    sys.path[0] = sys.argv[1]  # instead of this package's folder
    sys.exit(main(sys.argv[1]))  # type: ignore[no-untyped-call]
