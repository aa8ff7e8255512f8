"""`tradewind dags show` and `show-dependencies`: the tasks of a DAG, and the dependencies between DAGs, as table or graph."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli.arguments import dag_argument
from tradewind.cli.common import reading
from tradewind.cli.output import output_option, show
from tradewind.model.counts import counted
from tradewind.model.errors import NotFound

if TYPE_CHECKING:
    from tradewind.model.definition import DagDefinition
    from tradewind.sdk.dag import DAG

_TEXT_FORMATS = ("dot", "gv")
_COLUMNS = ("task_id", "operator", "upstream", "trigger_rule", "retries", "pool")

save_option = click.option(
    "-s",
    "--save",
    type=click.Path(dir_okay=False),
    help="Write the graph to this file: .dot, or .png, .svg … (needs Graphviz).",
)
imgcat_option = click.option("--imgcat", is_flag=True, help="Show the graph in the terminal; needs Graphviz and imgcat.")
dot_option = click.option("--dot", is_flag=True, help="Print the graph in the DOT language of Graphviz.")


@click.command("show")
@dag_argument
@save_option
@imgcat_option
@dot_option
@output_option
def show_dag(dag_id: str, save: str | None, imgcat: bool, dot: bool, output: str) -> None:
    """Show the tasks of a DAG and their dependencies."""
    with reading() as store:
        view, definition = store.dag_view(dag_id), store.current_definition(dag_id)
    if save is not None or imgcat or dot:
        write_graph(dag_as_dot(definition), save, imgcat)
        return
    rows = [
        {
            "task_id": task.task_id,
            "operator": task.operator,
            "upstream": list(task.upstream),
            "trigger_rule": task.trigger_rule.value,
            "retries": task.retries,
            "pool": task.pool,
        }
        for task in in_order(definition)
    ]
    if output == "table":
        state = "paused" if view.is_paused else "active"
        click.echo(
            f"{dag_id}  ({view.timetable_summary or 'no schedule'}, {state}, {counted(len(rows), 'task')})  {view.fileloc}"
        )
        for warning in definition.warnings:
            click.echo(f"warning: {warning}", err=True)
    show(rows, output, _COLUMNS)


@click.command("show-dependencies")
@save_option
@imgcat_option
@output_option
def show_dependencies(save: str | None, imgcat: bool, output: str) -> None:
    """Show which DAGs trigger each other, wait for each other, or run when another DAG updates an asset."""
    with reading() as store:
        definitions = [store.definition(plan.version) for plan in store.plans() if plan.is_active]
    rows = [row for definition in definitions for row in dependencies(definition)]
    rows += asset_dependencies(definitions)
    if save is not None or imgcat:
        edges = sorted({(row["source"], row["target"]) for row in rows})
        lines = [f"  {_quoted(name)} [shape=box]" for name in sorted({name for edge in edges for name in edge})]
        lines += [f"  {_quoted(source)} -> {_quoted(target)}" for source, target in edges]
        write_graph("\n".join(["digraph dependencies {", "  rankdir=LR", *lines, "}", ""]), save, imgcat)
        return
    columns = ("source", "target", "dependency_type", "dag_id", "task_id")
    show(rows, output, columns, empty="No DAG depends on another DAG.")


def dependencies(definition: DagDefinition) -> list[dict[str, Any]]:
    """The other DAGs that the tasks of a DAG trigger or wait for. Ids that come from a template are unknown and left out."""
    found = []
    for task in definition.tasks:
        kind = "trigger" if "Trigger" in task.operator else "sensor"
        for other in task.waits_for:
            source, target = (definition.dag_id, other) if kind == "trigger" else (other, definition.dag_id)
            about = {"dependency_type": kind, "dag_id": definition.dag_id, "task_id": task.task_id}
            found.append({"source": source, "target": target, **about})
    return found


def asset_dependencies(definitions: list[DagDefinition]) -> list[dict[str, Any]]:
    """The DAGs whose tasks produce assets on which other DAGs are scheduled."""
    from tradewind.model.assets import AssetKey, leaves

    found = []
    for consumer in definitions:
        for leaf in dict.fromkeys(leaves(consumer.assets.condition)) if consumer.assets is not None else ():
            for producer in definitions:
                for use in producer.asset_uses:
                    both = isinstance(use.what, AssetKey) and isinstance(leaf, AssetKey)
                    fits = leaf.fits(use.what.name, use.what.uri) if both else use.what == leaf  # type: ignore[union-attr]
                    if use.kind == "outlet" and fits:
                        about = {"dependency_type": "asset", "dag_id": producer.dag_id, "task_id": use.task_id}
                        found.append({"source": producer.dag_id, "target": consumer.dag_id, **about})
    return found


def in_order(definition: DagDefinition) -> list[Any]:
    """The tasks, parents before children, otherwise in the order of the definition."""
    left = {task.task_id: set(task.upstream) for task in definition.tasks}
    by_id = {task.task_id: task for task in definition.tasks}
    below: dict[str, list[str]] = {}
    for task in definition.tasks:
        for parent in task.upstream:
            below.setdefault(parent, []).append(task.task_id)
    ready = [name for name, parents in left.items() if not parents]
    found = []
    for name in ready:  # the loop appends to `ready`
        found.append(by_id[name])
        for child in below.get(name, ()):
            left[child].discard(name)
            if not left[child]:
                ready.append(child)
    return found


def dag_as_dot(definition: DagDefinition) -> str:
    """A DAG in the DOT language of Graphviz, with its task groups as clusters."""
    groups = {group.group_id: group for group in definition.groups}
    inside: dict[str | None, list[str]] = {}
    for task in definition.tasks:
        inside.setdefault(task.group or None, []).append(task.task_id)
    lines = [f"digraph {_quoted(definition.dag_id)} {{", "  rankdir=LR", "  node [shape=box, style=rounded]"]
    lines += _cluster(None, groups, inside, "  ")
    for task in definition.tasks:
        lines += [f"  {_quoted(parent)} -> {_quoted(task.task_id)}" for parent in task.upstream]
    return "\n".join([*lines, "}", ""])


_COLOURS = {"success": "palegreen", "failed": "tomato", "upstream_failed": "orange", "skipped": "plum"}


def run_as_dot(dag: DAG, states: Mapping[str, str]) -> str:
    """A run in the DOT language of Graphviz: the tasks with their states."""
    lines = [f"digraph {_quoted(dag.dag_id)} {{", "  rankdir=LR", '  node [shape=box, style="rounded,filled", fillcolor=white]']
    for task_id, task in dag.task_dict.items():
        state = states.get(task_id, "")
        colour = f", fillcolor={_COLOURS[state]}" if state in _COLOURS else ""
        lines.append(f"  {_quoted(task_id)} [label={_quoted(f'{task_id}: {state}' if state else task_id)}{colour}]")
        lines += [f"  {_quoted(parent)} -> {_quoted(task_id)}" for parent in sorted(task.upstream_task_ids)]
    return "\n".join([*lines, "}", ""])


def _cluster(group: str | None, groups: dict[str, Any], inside: dict[str | None, list[str]], indent: str) -> list[str]:
    lines = [f"{indent}{_quoted(task_id)}" for task_id in inside.get(group, ())]
    for name, one in groups.items():
        if (one.parent or None) == group and name:
            lines += [f"{indent}subgraph {_quoted('cluster_' + name)} {{", f"{indent}  label={_quoted(name)}"]
            lines += _cluster(name, groups, inside, indent + "  ")
            lines.append(f"{indent}}}")
    return lines


def tree(definition: DagDefinition) -> Iterable[str]:
    """The lines of a text tree of the tasks. A task with several parents is shown below each of them, its children only once."""
    below: dict[str, list[str]] = {}
    kinds = {task.task_id: task.operator for task in definition.tasks}
    for task in definition.tasks:
        for parent in task.upstream:
            below.setdefault(parent, []).append(task.task_id)
    seen: set[str] = set()
    stack = [(0, task.task_id) for task in reversed(definition.tasks) if not task.upstream]
    while stack:
        depth, name = stack.pop()
        again = name in seen and below.get(name)
        yield f"{'    ' * depth}<{kinds[name]}> {name}{' (see above)' if again else ''}"
        if not again:
            seen.add(name)
            stack += [(depth + 1, child) for child in reversed(below.get(name, []))]


def write_graph(dot: str, save: str | None, imgcat: bool) -> None:
    """Print a graph, or write it to a file (its extension is the format), or draw it in the terminal.

    Raises:
        NotFound: the drawing program is not installed.
        click.ClickException: the drawing program failed.
    """
    if save is None and not imgcat:
        click.echo(dot, nl=False)
        return
    if save is not None:
        kind = save.rpartition(".")[2].lower() if "." in save else "dot"
        data = dot.encode() if kind in _TEXT_FORMATS else _drawn(dot, kind)
        with open(save, "wb") as file:
            file.write(data)
        click.echo(f"The graph was written to {save}.")
    if imgcat:
        program = shutil.which("imgcat")
        if program is None:
            raise NotFound("imgcat, which draws images in some terminals, is not installed. Use --save FILE.png instead")
        subprocess.run([program], input=_drawn(dot, "png"), check=False)


def _drawn(dot: str, kind: str) -> bytes:
    program = shutil.which("dot")
    if program is None:
        raise NotFound(
            f"a .{kind} file needs the program `dot` of Graphviz, which is not installed. Use --save FILE.dot instead"
        )
    done = subprocess.run([program, f"-T{kind}"], input=dot.encode(), capture_output=True, check=False)
    if done.returncode:
        raise click.ClickException(f"Graphviz could not draw a .{kind} file: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
