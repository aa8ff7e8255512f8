"""`airflow.utils.dot_renderer`: the tasks of a DAG and their dependencies in the DOT language of Graphviz."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tradewind.model.errors import TradewindError
from tradewind.sdk.dag import DAG
from tradewind.sdk.taskgroup import TaskGroup

__all__ = ["Graph", "render_dag"]


class Graph:
    """A graph as text, with the methods of `graphviz.Digraph` that DAG files call."""

    def __init__(self, source: str) -> None:
        self.source = source

    def __str__(self) -> str:
        return self.source

    def save(self, filename: str) -> str:
        """Write the text to a file."""
        Path(filename).write_text(self.source)
        return filename

    def pipe(self, format: str = "pdf", **_unused: Any) -> bytes:
        """The graph as a picture.

        Raises:
            TradewindError: Graphviz is not installed, or it cannot make this format.
        """
        if shutil.which("dot") is None:
            raise TradewindError("a picture of a DAG needs the program dot; install Graphviz")
        done = subprocess.run(["dot", f"-T{format}"], input=self.source.encode(), capture_output=True, check=False)
        if done.returncode != 0:
            raise TradewindError(f"dot cannot make a picture in the format {format!r}: {done.stderr.decode(errors='replace')}")
        return done.stdout

    def render(self, filename: str, *, format: str = "pdf", **_unused: Any) -> str:
        """Write the picture to the file `<filename>.<format>`, and return this name."""
        path = f"{filename}.{format}"
        Path(path).write_bytes(self.pipe(format))
        return path


def render_dag(dag: DAG, tis: Any = None) -> Graph:
    """The graph of a DAG. The states of task instances (`tis`) are not drawn."""
    lines = [f"digraph {_quoted(dag.dag_id)} {{", f"\tgraph [label={_quoted(dag.dag_id)} labelloc=t rankdir=LR]"]
    lines += _nodes(dag.task_group, 1)
    for task in dag.tasks:
        for downstream in sorted(task.downstream_task_ids):
            label = dag.get_edge_info(task.task_id, downstream).get("label")
            suffix = f" [label={_quoted(label)}]" if label else ""
            lines.append(f"\t{_quoted(task.task_id)} -> {_quoted(downstream)}{suffix}")
    return Graph("\n".join([*lines, "}", ""]))


def _nodes(group: TaskGroup, depth: int) -> Iterator[str]:
    """The lines of the nodes of a group; a group in it is a cluster."""
    indent = "\t" * depth
    for node in group.children.values():
        if isinstance(node, TaskGroup):
            yield f"{indent}subgraph {_quoted(f'cluster_{node.node_id}')} {{"
            yield f"{indent}\tlabel={_quoted(node.label or '')}"
            yield from _nodes(node, depth + 1)
            yield f"{indent}}}"
        else:
            yield f"{indent}{_quoted(node.task_id)} [label={_quoted(node.label)} shape=rectangle style=rounded]"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
