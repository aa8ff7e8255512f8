"""The workflow of a golden specification as a DAG, built as an author would write it.

The code of its tasks does what their script says, and sleeps in virtual time for the given duration.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import tradewind as tw
from tradewind.operators import empty, python

Json = Mapping[str, Any]
GIVEN = {"pool_slots", "priority_weight", "weight_rule", "trigger_rule", "retries", "depends_on_past", "wait_for_downstream"}
GIVEN |= {"max_active_tis_per_dag", "max_active_tis_per_dagrun", "pool"}
KINDS = {"branch": python.BranchPythonOperator, "short_circuit": python.ShortCircuitOperator}


def act(spec: Json, *, ti: Any, dag_run: Any, **context: Any) -> Any:
    """The behaviour of a task of families A, B and E in one attempt."""

    def asked(key: str, default: Any = None) -> Any:
        value = spec.get(f"{key}_by_run", {}).get(dag_run.run_id, spec.get(key, default))
        return spec.get(f"{key}_by_index", {}).get(str(ti.map_index), value)

    def now(value: Any) -> Any:
        return value[min(ti.try_number, len(value)) - 1] if isinstance(value, list) else value

    time.sleep(now(asked("duration", 1)))
    match now(asked("script", "success")), spec.get("kind"), asked("returns"):
        case "fail", _, _:
            raise ValueError("as the script says")
        case "fail_hard", _, _:
            raise tw.AirflowFailException("as the script says")
        case "skip", _, _:
            raise tw.AirflowSkipException("as the script says")
        case _, "branch", _:
            return asked("follow")
        case _, "short_circuit", _:
            return asked("condition", True)
        case _, _, {"value": value}:
            return value
        case _, _, {"by_attempt": lengths}:
            return list(range(now(lengths)))
        case _, _, returns:
            return None if returns is None else list(range(returns))


def providers(dimensions: Iterable[Any]) -> Iterable[str]:
    """The tasks that return the lists for `expand`."""
    for dimension in dimensions:
        ((kind, given),) = ({"xcom": dimension} if isinstance(dimension, str) else dimension).items()
        yield from () if kind == "literal" else [given] if kind == "xcom" else providers(given)


class Scripted(tw.BaseOperator):
    """A plain task. It has two parameters for elements of lists, which it ignores."""

    def __init__(self, spec: Json, one: Any = None, other: Any = None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.spec = spec

    def execute(self, context: Any) -> Any:
        return act(self.spec, **context)


class Workflow:
    """Tasks (mapped groups as a whole), edges between them, setup/teardown pairs, edges of groups: the order decides what roots
    and leaves are.
    """

    def __init__(self, spec: Json, dag: tw.DAG) -> None:
        self.dag = dag
        self.tasks = {task["id"]: task for task in spec["tasks"]}
        self.groups = {group["id"]: group for group in spec.get("groups", ())}
        self.edges = [tuple(edge) for edge in spec.get("edges", ())]
        self.nodes: dict[str, Any] = {}
        for name in (*self.groups, *self.tasks):
            self.node(name)
        made = {edge for edge in self.edges if self.mapped(edge[0]) and self.mapped(edge[0]) == self.mapped(edge[1])}
        self.connect(edge for edge in self.edges if edge not in made and not self.groups.keys() & set(edge))
        for name in (name for name, task in self.tasks.items() if task.get("setup")):
            self.nodes[name].as_setup()
        for name, pair in ((name, task.get("teardown")) for name, task in self.tasks.items()):
            if pair is not None:
                self.nodes[name].as_teardown(**pair | {"setups": [self.nodes[setup] for setup in pair.get("setups", ())]})
        self.connect(edge for edge in self.edges if self.groups.keys() & set(edge))

    def connect(self, edges: Iterable[tuple[str, ...]]) -> None:
        for up, down in edges:
            self.nodes[up] >> self.nodes[down]

    def mapped(self, name: str | None) -> str | None:
        """The mapped group around a node, or the node itself."""
        while name is not None and "expand" not in self.groups.get(name, ()):
            name = self.groups[name].get("parent") if name in self.groups else self.tasks[name].get("group")
        return name

    def node(self, name: str) -> Any:
        """Create a task or group, together with the mapped group around it and the tasks that return its lists."""
        if name not in self.nodes and (around := self.mapped(name)) not in (None, *self.nodes):
            self.fill(str(around))
        if name not in self.nodes:
            spec = self.groups.get(name) or self.tasks[name]
            owner = spec.get("group") or spec.get("parent")
            within = self.node(owner) if owner else None
            local = name.rpartition(".")[2]
            self.nodes[name] = (
                tw.TaskGroup(local, parent_group=within) if name in self.groups else self.operator(spec, local, within)
            )
        return self.nodes[name]

    def fill(self, name: str) -> None:
        """Create a mapped group with its members and their edges."""
        parent, lists = self.groups[name].get("parent"), self.lists(self.groups[name])
        inside = [node for node in (*self.groups, *self.tasks) if self.mapped(node) == name and node != name]

        @tw.task_group(group_id=name.rpartition(".")[2], **({"parent_group": self.node(parent)} if parent else {}))
        def body(one: Any = None, other: Any = None) -> None:
            self.nodes[name] = self.dag.task_group_dict[name]
            for node in inside:
                self.node(node)
            self.connect(edge for edge in self.edges if {*edge} <= {*inside} - self.groups.keys())
            self.connect_lists(name, [node for node in inside if node in self.tasks])

        body.expand(**lists)

    def connect_lists(self, name: str, members: list[str]) -> None:
        """Connect the tasks that return the lists with the roots of a mapped group, once for each own task as in the recorded
        workflows.
        """
        own = [number for number, member in enumerate(members) if self.tasks[member].get("group") == name]
        early = members[: own[-1] + 1] if own else []
        self.connect((provider, member) for provider in providers(self.groups[name]["expand"]) for member in early)

    def lists(self, spec: Json) -> dict[str, Any]:
        """The arguments of `expand`."""
        return dict(zip(("one", "other"), [self.list_of(dimension) for dimension in spec["expand"]], strict=False))

    def list_of(self, dimension: Any) -> Any:
        by_kind: dict[str, Any] = {"xcom": dimension} if isinstance(dimension, str) else dimension
        ((kind, given),) = by_kind.items()
        if kind == "literal":
            return list(range(given))
        if kind == "xcom":
            return self.node(given).output
        first, *others = [self.list_of(part) for part in given]
        if kind == "concat":
            return first.concat(*others)
        return first.zip(*others, **({"fillvalue": None} if kind == "zip_longest" else {}))

    def operator(self, spec: Json, local: str, group: tw.TaskGroup | None) -> Any:
        given = {key: spec[key] for key in GIVEN & spec.keys()} | {"task_id": local, "task_group": group}
        given["retry_delay"] = timedelta(seconds=spec.get("retry_delay", 0))
        if spec.get("kind") == "empty":
            return empty.EmptyOperator(**given)
        if "expand" in spec:
            if "kind" in spec:
                raise NotImplementedError("a branch or short circuit that is itself mapped")
            return Scripted.partial(spec=spec, **given).expand(**self.lists(spec))
        if spec.get("kind") == "short_circuit":
            given["ignore_downstream_trigger_rules"] = spec.get("ignore_downstream_trigger_rules", True)
        if "kind" in spec:
            return KINDS[spec["kind"]](python_callable=partial(act, spec), **given)
        return Scripted(spec, **given)


def workflow(dag_id: str, spec: Json, **settings: Any) -> tw.DAG:
    """The DAG of a specification."""
    with tw.DAG(dag_id, schedule=None, start_date=datetime(2000, 1, 1, tzinfo=UTC), **settings) as dag:
        Workflow(spec, dag)
    return dag
