"""The states of a run's task instances in a few bytes, for a grid of many runs.

A summary has one state for each task, in the order of a definition, as run lengths; a mapped task has its worst state, and the
numbers of its instances by state. Most runs are summarised in some ten bytes, however many tasks they have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from tradewind.kernel.run_data import RunData
from tradewind.model.states import TASK_STATES, TaskState

ABSENT = 255
"""Code in place of a state: the run has no instance of the task."""

_S = TaskState

WORST_FIRST: tuple[TaskState, ...] = (
    _S.FAILED,
    _S.UPSTREAM_FAILED,
    _S.UP_FOR_RETRY,
    _S.UP_FOR_RESCHEDULE,
    _S.QUEUED,
    _S.SCHEDULED,
    _S.DEFERRED,
    _S.AWAITING_INPUT,
    _S.RUNNING,
    _S.RESTARTING,
    _S.NONE,
    _S.SUCCESS,
    _S.SKIPPED,
    _S.REMOVED,
)
"""The state that represents several task instances: the first state of this list that one of them has. Source: Airflow's grid
(`api_fastapi/core_api/services/ui/grid.py`)."""

_RANKS = bytes(WORST_FIRST.index(TASK_STATES[code]) if code < len(TASK_STATES) else ABSENT for code in range(256))
_CODE_OF_RANK = bytes(WORST_FIRST[rank].code if rank < len(WORST_FIRST) else ABSENT for rank in range(256))

_EQUAL = re.compile(rb"(.)\1*", re.DOTALL)

StateCounts = tuple[tuple[int, int], ...]
"""(state code, how many task instances), by code; only states that occur."""


class RunSummary(msgspec.Struct, frozen=True, array_like=True):
    """See the module. `states` has two entries for each stretch of equal states: its length, and the state's code."""

    version: int
    """The version of the DAG that defines the order of the tasks in `states`."""
    states: tuple[int, ...]
    counts: StateCounts
    """The states of all task instances, including those of tasks that the definition does not have any more."""
    mapped: dict[int, StateCounts] = {}
    """Number of a task with several instances → its instances by state."""


def worst(codes: bytes | bytearray) -> int:
    """Return the code that stands for all these task instances; ABSENT if there is none."""
    return _CODE_OF_RANK[min(codes.translate(_RANKS), default=ABSENT)]


def stretches(codes: bytes | bytearray) -> tuple[int, ...]:
    """Return lengths and codes of the stretches of equal codes: `(length, code, length, code, …)`."""
    found: list[int] = []
    for match in _EQUAL.finditer(codes):
        start, end = match.span()
        found += (end - start, codes[start])
    return tuple(found)


def expanded(lengths_and_codes: Iterable[int]) -> bytes:
    """Return one code for each task: the reverse of `stretches`."""
    pairs = iter(lengths_and_codes)
    return b"".join(bytes((code,)) * length for length, code in zip(pairs, pairs, strict=True))


def counted(codes: bytes | bytearray) -> StateCounts:
    """Return how many task instances have each code."""
    return tuple((code, codes.count(code)) for code in sorted(set(codes)))


def summarise(version: int, tasks: Mapping[str, int], rows: Iterable[tuple[str, int]]) -> RunSummary:
    """Summarise a run.

    Args:
        tasks: task id → its number in the definition of `version`.
        rows: (task id, state code) of all task instances.
    """
    owners: list[int] = []
    codes = bytearray()
    for task_id, code in rows:
        owners.append(tasks.get(task_id, -1))
        codes.append(code)
    return summarise_owned(version, len(tasks), owners, codes)


def summarise_owned(version: int, task_count: int, owners: Iterable[int], codes: bytes | bytearray) -> RunSummary:
    """Summarise a run.

    Args:
        task_count: number of tasks of `version`.
        owners: for each task instance the number of its task; -1: the version does not have the task.
        codes: for each task instance its state code; ABSENT: the run has no such task instance.
    """
    states = bytearray((ABSENT,)) * task_count
    several: dict[int, bytearray] = {}
    for number, code in zip(owners, codes, strict=True):
        if number < 0:
            continue
        if states[number] == ABSENT:
            states[number] = code
        elif number in several:
            several[number].append(code)
        else:
            several[number] = bytearray((states[number], code))
    for number, instances in several.items():
        states[number] = worst(instances)
    every = codes.replace(bytes((ABSENT,)), b"")
    mapped = {number: counted(instances) for number, instances in several.items()}
    return RunSummary(version, stretches(states), counted(every), mapped)


def summarise_plain(version: int, states: bytes | bytearray) -> RunSummary:
    """Summarise a run that has one task instance for each task: `states` by the number of the task."""
    return RunSummary(version, stretches(states), counted(states))


def summary_of(run: RunData, version: int) -> RunSummary:
    """Summarise a run in memory. `version`: the version of its topology."""
    topology = run.topology
    if topology.layout is None and not run.instances.expanded and not run.gone:
        return summarise_plain(version, run.state)
    tasks = {task.task_id: number for number, task in enumerate(topology.definition.tasks)}
    return summarise(version, tasks, ((run.task_id(slot), code) for slot, code in enumerate(run.state)))


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[RunSummary] = msgspec.msgpack.Decoder(RunSummary)


def encode_summary(summary: RunSummary) -> bytes:
    return _encoder.encode(summary)


def decode_summary(data: bytes) -> RunSummary:
    return _decoder.decode(data)
