"""Writes `examples.md`: all shipped examples with their text, graph and code.

python docs/generate_examples.py
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from tradewind.sdk.dag import DAG
from tradewind.sdk.taskgroup import TaskGroup
from tradewind.testing import DagFolder

PAGE = Path(__file__).parent / "examples.md"
FOLDER = Path(__file__).parent.parent / "examples"

HEAD = """# Examples

<!-- Written by docs/generate_examples.py from the folder examples/. Change the files there, then run `make docs`. -->

`make run` and `tradewind standalone` show all these DAGs, paused. Use `tradewind dags unpause ID`, or
`tradewind dags trigger ID` to start a run now. Our test suite runs each of them with the [test kit](how-to/test-your-dags.md).

The weather examples are larger: see the [README](../README.md). In the graphs, setups and teardowns have rounded ends.
"""


def page() -> str:
    """The whole page."""
    path = list(sys.path)
    folder = DagFolder.read(FOLDER)
    sys.path[:] = path
    folder.check()
    first = {"hello_chain.py": 0}  # newcomers start here
    files = sorted((file for file in folder.files), key=lambda file: ("/" in file, first.get(file, 1), file))
    parts = [HEAD, "\n".join(_contents(files))]
    for file in files:
        parts.append(_section(file, [folder.dags[dag_id] for dag_id in folder.files[file]]))
    return "\n".join(parts)


def _contents(files: list[str]) -> list[str]:
    lines = ["| example | shows |", "|---|---|"]
    for file in files:
        text = _docstring(file).splitlines()[0].rstrip(".")
        lines.append(f"| [{Path(file).stem}](#{Path(file).stem}) | {text} |")
    return [*lines, ""]


def _docstring(file: str) -> str:
    found = ast.get_docstring(ast.parse((FOLDER / file).read_text(encoding="utf-8")))
    assert found is not None, f"{file} does not say what it shows"
    return found


def _section(file: str, dags: list[DAG]) -> str:
    lines = [f"## {Path(file).stem}", "", "```text", _docstring(file), "```", ""]
    for dag in dags:
        lines += ["```mermaid", *graph(dag), "```", ""]
    if file.startswith("weather"):
        return "\n".join([*lines, f"The code: [examples/{file}](../examples/{file})", ""])
    code = (FOLDER / file).read_text(encoding="utf-8").split('"""', 2)[2].strip()
    return "\n".join([*lines, "```python", code, "```", ""])


def graph(dag: DAG) -> list[str]:
    """A Mermaid flow chart of a DAG with its tasks, groups and dependencies."""
    numbers = {task_id: f"t{number}" for number, task_id in enumerate(dag.task_dict)}
    lines = ["flowchart LR"]

    def draw(group: TaskGroup, depth: int) -> None:
        indent = "  " * depth
        for child in group.children.values():
            if isinstance(child, TaskGroup):
                lines.append(f'{indent}subgraph g{len(lines)}["{child.label}"]')
                draw(child, depth + 1)
                lines.append(f"{indent}end")
            else:
                left, right = ("([", "])") if child.is_setup or child.is_teardown else ("[", "]")
                lines.append(f'{indent}{numbers[child.task_id]}{left}"{child.label}"{right}')

    draw(dag.task_group, 1)
    for task_id, task in dag.task_dict.items():
        for down in sorted(task.downstream_task_ids, key=list(dag.task_dict).index):
            lines.append(f"  {numbers[task_id]} --> {numbers[down]}")
    return lines


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
