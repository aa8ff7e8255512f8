"""The shape of a DAG in flat arrays, shared by all runs of one version.

Task `i` is the i-th task of the definition. In a run that began with another definition, task `i` is the task whose own slot is
`i` (see `layout`). Edges are stored in both directions as compressed rows: `down[down_at[i]:down_at[i + 1]]` holds the direct
downstream tasks of `i`, `up[up_at[i]:up_at[i + 1]]` its direct upstream tasks. A task costs some tens of bytes once, however
many runs there are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

from tradewind.kernel.domains import FAST_RULES, Domain, find_domains
from tradewind.kernel.layout import Layout
from tradewind.kernel.trigger_rules import RULE_CODES
from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.states import TriggerRule, WeightRule

PRIORITY_MIN, PRIORITY_MAX = -(2**31), 2**31 - 1
"""Airflow stores priority weights in 32 bits and clamps greater ones."""


Rows = dict[int, tuple[int, ...]]
"""Task → other tasks; only tasks that have any are keys."""


class Topology:
    """Arrays over the tasks of one DAG version. Read only."""

    __slots__ = (
        "count",
        "definition",
        "domain_of",
        "domains",
        "down",
        "down_at",
        "fail_fast",
        "fast_tasks",
        "has_past",
        "has_setups",
        "ids",
        "index",
        "layout",
        "looks_back",
        "mapped_over",
        "needed_by",
        "numbers",
        "past_tasks",
        "priority",
        "retries",
        "rules",
        "same_index_up",
        "setups_of",
        "tasks",
        "teardown_scope",
        "teardowns_over",
        "up",
        "up_at",
        "verdict",
        "waits",
    )

    def __init__(self, definition: DagDefinition, layout: Layout | None = None) -> None:
        """Build the arrays.

        Args:
            layout: the slots of the tasks in a run that began with another definition; None: task i has slot i.
        """
        self.layout = layout
        self.numbers: Sequence[int] = range(len(definition.tasks))
        """The numbers of all tasks. With a layout, the numbers between them belong to no task and have no edges."""
        tasks = definition.tasks
        if layout is not None:
            tasks = tuple(_placed(definition, layout))
            self.numbers = tuple(i for i, task_id in enumerate(layout.own) if task_id is not None)
        self.definition = definition
        self.tasks: tuple[TaskDefinition, ...] = tasks
        self.count = len(tasks)
        """Size of the range of numbers, including numbers that belong to no task."""
        self.ids: tuple[str, ...] = tuple(task.task_id for task in tasks)
        self.index: dict[str, int] = {self.ids[i]: i for i in self.numbers}
        self.fail_fast = definition.fail_fast
        self.rules = bytes(RULE_CODES[task.trigger_rule] for task in tasks)
        self.retries = array("i", (task.retries for task in tasks))
        upstream = [[self.index[u] for u in task.upstream] for task in tasks]
        downstream: list[list[int]] = [[] for _ in tasks]
        for i, parents in enumerate(upstream):
            for parent in parents:
                downstream[parent].append(i)
        self.up, self.up_at = _rows(upstream)
        self.down, self.down_at = _rows(downstream)
        self.priority = _priorities(tasks, upstream, downstream)
        self.past_tasks: tuple[int, ...] = tuple(
            i for i, task in enumerate(tasks) if task.depends_on_past or task.wait_for_downstream
        )
        self.looks_back = frozenset(self.past_tasks)
        self.has_past = bool(self.past_tasks)
        self.waits: dict[int, bool] = {i: task.wait.needs_a_date for i, task in enumerate(tasks) if task.wait is not None}
        """Tasks that the scheduler can wait for instead of an attempt → whether only in a run with a logical date."""
        self.verdict: tuple[int, ...] = tuple(i for i in self.numbers if self._is_verdict_leaf(i))
        """Tasks whose states decide the state of the run."""
        if not self.verdict:  # all tasks are teardowns: then the teardowns decide
            self.verdict = tuple(i for i in self.numbers if not downstream[i])
        self.domains: tuple[Domain, ...] = tuple(find_domains(definition, self.index))
        """Tasks that are expanded together (see `domains`)."""
        self.domain_of: dict[int, int] = {task: i for i, domain in enumerate(self.domains) for task in domain.tasks}
        self.fast_tasks: frozenset[int] = frozenset(i for i in self.domain_of if tasks[i].trigger_rule in FAST_RULES)
        """Mapped tasks with a fast trigger rule: until they are expanded, all map indexes count for them."""
        self.same_index_up: Rows = _same_index_edges(upstream, self.domain_of)
        """Task → upstream tasks of which only the instance with the same map index counts."""
        self.mapped_over: Rows = _shared_tuples(_by_provider(self.domains))
        """Task → tasks that are expanded over its return value."""
        self.has_setups = any(task.is_setup for task in tasks)
        self.setups_of: Rows = _indirect_setups(tasks, upstream, downstream) if self.has_setups else {}
        """Task → setups that it needs although they are not its direct upstream tasks."""
        self.needed_by: Rows = _inverted(self.setups_of)
        """Setup → tasks that need it although they are not its direct downstream tasks."""
        self.teardown_scope: Rows = _teardown_scopes(tasks, upstream, downstream) if self.has_setups else {}
        """Teardown → tasks that it waits for in addition to its direct upstream tasks: all between its setups and itself."""
        self.teardowns_over: Rows = _inverted(self.teardown_scope)
        """Task → teardowns that wait for it without an edge."""

    def upstream(self, task: int) -> Sequence[int]:
        """Return the direct upstream tasks."""
        return self.up[self.up_at[task] : self.up_at[task + 1]]

    def downstream(self, task: int) -> Sequence[int]:
        """Return the direct downstream tasks."""
        return self.down[self.down_at[task] : self.down_at[task + 1]]

    def descendants(self, task: int) -> set[int]:
        """Return all tasks downstream of `task`, without itself."""
        found: set[int] = set()
        stack = list(self.downstream(task))
        while stack:
            node = stack.pop()
            if node not in found:
                found.add(node)
                stack.extend(self.downstream(node))
        return found

    def ancestors(self, task: int) -> set[int]:
        """Return all tasks upstream of `task`, without itself."""
        found: set[int] = set()
        stack = list(self.upstream(task))
        while stack:
            node = stack.pop()
            if node not in found:
                found.add(node)
                stack.extend(self.upstream(node))
        return found

    def only_waits(self, task: int, logical_date: int | None) -> bool:
        """Return whether the scheduler waits instead of an attempt of this task, in a run with this logical date."""
        return task in self.waits and (logical_date is not None or not self.waits[task])

    def _is_verdict_leaf(self, i: int) -> bool:
        """Return whether the task decides the state of the run: a leaf, and no teardown without `on_failure_fail_dagrun`."""

        def ignorable(j: int) -> bool:
            return self.tasks[j].is_teardown and not self.tasks[j].on_failure_fail_dagrun

        return not ignorable(i) and all(ignorable(j) for j in self.downstream(i))


def _placed(definition: DagDefinition, layout: Layout) -> Iterator[TaskDefinition]:
    """Yield the tasks by slot. For a slot that belongs to no task, yield a task without id and edges."""
    tasks = {task.task_id: task for task in definition.tasks}
    for task_id in layout.own:
        yield _NO_TASK if task_id is None else tasks[task_id]


_NO_TASK = TaskDefinition("")


def _same_index_edges(upstream: list[list[int]], domain_of: dict[int, int]) -> Rows:
    return _shared_tuples(
        {task: [up for up in upstream[task] if domain_of.get(up) == domain] for task, domain in domain_of.items()}
    )


def _by_provider(domains: Sequence[Domain]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for domain in domains:
        for provider in domain.providers:
            found.setdefault(provider, []).extend(domain.tasks)
    return found


def _rows(lists: list[list[int]]) -> tuple[array[int], array[int]]:
    flat, starts = array("i"), array("i", [0])
    for row in lists:
        flat.extend(row)
        starts.append(len(flat))
    return flat, starts


def topological_order(upstream: list[list[int]], downstream: list[list[int]]) -> list[int]:
    """Return the tasks ordered so that upstream tasks come first. The definition has no cycles: the DAG was checked when parsed."""
    missing = [len(parents) for parents in upstream]
    ready = [i for i, count in enumerate(missing) if count == 0]
    for node in ready:
        for child in downstream[node]:
            missing[child] -= 1
            if missing[child] == 0:
                ready.append(child)
    return ready


def _priorities(tasks: Sequence[TaskDefinition], upstream: list[list[int]], downstream: list[list[int]]) -> array[int]:
    """Return the total priority weight of each task by its weight rule.

    The rule `downstream` adds the weights of all tasks downstream, each counted once. For a chain or a tree one pass is enough;
    if paths join again, the descendants are collected as integer bit sets.
    """
    weights = [task.priority_weight for task in tasks]
    totals = array("q", weights)
    rules = {task.weight_rule for task in tasks}
    if rules <= {WeightRule.ABSOLUTE} or not tasks:
        return _clamped(totals)
    order = topological_order(upstream, downstream)
    for rule, forward, sequence in (
        (WeightRule.DOWNSTREAM, downstream, list(reversed(order))),
        (WeightRule.UPSTREAM, upstream, order),
    ):
        if rule in rules:
            _sum_reachable(rule, tasks, weights, forward, sequence, totals)
    return _clamped(totals)


EXACT_WEIGHT_TASKS = 20_000
"""Maximum number of tasks for which weights over joining paths are counted exactly (n bits per task: 50 MB at the limit).
With more tasks, the sum over all paths is used and clamped: magnitude and order of the weights stay right."""


def _sum_reachable(
    rule: WeightRule,
    tasks: Sequence[TaskDefinition],
    weights: list[int],
    forward: list[list[int]],
    sequence: list[int],
    totals: array[int],
) -> None:
    backward_count = [0] * len(tasks)
    for children in forward:
        for child in children:
            backward_count[child] += 1
    tree = all(count <= 1 for count in backward_count)
    if tree or len(tasks) > EXACT_WEIGHT_TASKS:
        sums = list(weights)
        for node in sequence:
            sums[node] = min(weights[node] + sum(sums[child] for child in forward[node]), PRIORITY_MAX)
        for i, task in enumerate(tasks):
            if task.weight_rule is rule:
                totals[i] = sums[i]
        return
    uniform = weights[0] if len(set(weights)) == 1 else None
    reach: list[int] = [0] * len(tasks)
    remaining = list(backward_count)
    for node in sequence:
        bits = 1 << node
        for child in forward[node]:
            bits |= reach[child]
            remaining[child] -= 1
            if remaining[child] == 0:
                reach[child] = 0
        reach[node] = bits
        if tasks[node].weight_rule is rule:
            totals[node] = uniform * bits.bit_count() if uniform is not None else _weigh(bits, weights)


def _weigh(bits: int, weights: list[int]) -> int:
    total = 0
    while bits:
        low = bits & -bits
        total += weights[low.bit_length() - 1]
        bits ^= low
    return total


def _clamped(totals: array[int]) -> array[int]:
    return array("i", (max(PRIORITY_MIN, min(PRIORITY_MAX, total)) for total in totals))


def _reachable(start: int, rows: list[list[int]]) -> set[int]:
    found: set[int] = set()
    stack = list(rows[start])
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(rows[node])
    return found


def _indirect_setups(tasks: Sequence[TaskDefinition], upstream: list[list[int]], downstream: list[list[int]]) -> Rows:
    """Return task → setups: a task needs an upstream setup if the setup has no teardown, or one downstream of the task."""
    needs: dict[int, list[int]] = {}
    for setup, task in enumerate(tasks):
        if not task.is_setup:
            continue
        region = _reachable(setup, downstream)
        teardowns = [node for node in downstream[setup] if tasks[node].is_teardown]
        if teardowns:
            region &= set[int]().union(*(_reachable(teardown, upstream) for teardown in teardowns))
        for node in region.difference(downstream[setup]):
            if not tasks[node].is_teardown:
                needs.setdefault(node, []).append(setup)
    return _shared_tuples(needs)


def _teardown_scopes(tasks: Sequence[TaskDefinition], upstream: list[list[int]], downstream: list[list[int]]) -> Rows:
    scopes: dict[int, list[int]] = {}
    for teardown, task in enumerate(tasks):
        if task.is_teardown:
            above = _reachable(teardown, upstream)
            below = set[int]().union(*(_reachable(node, downstream) for node in upstream[teardown] if tasks[node].is_setup))
            scopes[teardown] = sorted((above & below).difference(upstream[teardown]))
    return _shared_tuples(scopes)


def _inverted(rows: Rows) -> Rows:
    inverted: dict[int, list[int]] = {}
    for node, others in rows.items():
        for other in others:
            inverted.setdefault(other, []).append(node)
    return _shared_tuples(inverted)


def _shared_tuples(rows: dict[int, list[int]]) -> Rows:
    """Return the rows as tuples, without empty ones. Equal rows share one tuple: 100,000 tasks may need the same setup."""
    shared: dict[tuple[int, ...], tuple[int, ...]] = {}
    return {node: shared.setdefault(row, row) for node, others in rows.items() if (row := tuple(others))}


RULE_ALWAYS = RULE_CODES[TriggerRule.ALWAYS]
