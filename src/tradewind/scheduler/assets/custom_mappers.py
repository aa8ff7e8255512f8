"""Asks partition mappers of users for the keys of asset events.

The scheduler never calls a mapper that users wrote. An event for a DAG with such a mapper is stored as not mapped yet. This class
sends a request to the parser; a child process of the parser asks the mapper, and the answer lets the event wait for the keys that
the mapper has given. A mapper that raises drops the event, with the reason; `why` shows it.
"""

from __future__ import annotations

from typing import NamedTuple

from tradewind.model.partitions import Custom, MappedKey, PartitionRules, UnmappedEvent
from tradewind.model.rows import DagPlan
from tradewind.observe.log import Log
from tradewind.scheduler.dags.custom_timetables import CustomTimetables
from tradewind.store.port import Store
from tradewind.wire.messages import TimetableAnswer, TimetableQuestion

log = Log("mappers")

EVENTS_AT_ONCE = 100
"""Maximum number of events of one request."""


class _Open(NamedTuple):
    """A request that is not answered yet."""

    question: TimetableQuestion
    events: list[UnmappedEvent]


class CustomMappers:
    """See the module.

    Args:
        timetables: has the connection to the parser, and numbers the requests.
    """

    def __init__(self, store: Store, epoch: int, timetables: CustomTimetables) -> None:
        self._store = store
        self._epoch = epoch
        self._timetables = timetables
        self._open: dict[int, _Open] = {}
        self._asked: dict[str, int] = {}
        """DAG → the number of its open request."""
        self._one_by_one: set[str] = set()
        """DAGs whose last request for several events failed as a whole: one of the keys may hang or kill the process."""

    def clear(self) -> None:
        """Drop all open requests: they are made again from the store."""
        self._open.clear()
        self._asked.clear()

    def send_again(self) -> None:
        """Send the open requests to a parser that has just connected."""
        for one in list(self._open.values()):
            self._timetables.send(one.question)

    def consult(self, plan: DagPlan, rules: PartitionRules) -> None:
        """Ask for the keys of the events that are not mapped, unless a request of the DAG is open.

        Raises:
            StoreError: the events cannot be read.
        """
        dag_id = plan.dag_id
        if dag_id in self._asked or not rules.has_custom:
            return
        events = self._store.unmapped_events(dag_id, 1 if dag_id in self._one_by_one else EVENTS_AT_ONCE)
        if not events:
            self._one_by_one.discard(dag_id)
            return
        mapper = rules.mapper(events[0].name, events[0].uri)
        if not isinstance(mapper, Custom):  # the mappers have changed meanwhile
            self._write(dag_id, [(events[0], MappedKey(problem="the partition mappers of the DAG's schedule have changed"))])
            return
        alike = [one for one in events if rules.mapper(one.name, one.uri) == mapper]
        question = TimetableQuestion(
            self._timetables.number(),
            dag_id,
            plan.bundle,
            plan.file,
            b"",
            bundle_version=plan.bundle_version,
            mapper=mapper.spec,
            keys=tuple((one.key, one.date) for one in alike),
        )
        self._open[question.number] = _Open(question, alike)
        self._asked[dag_id] = question.number
        self._timetables.send(question)

    def take(self, answer: TimetableAnswer) -> str | None:
        """Use an answer.

        Returns:
            The DAG that it is for; None: the answer is not for an open request of a mapper.

        Raises:
            StoreError: the answer cannot be written.
        """
        request = self._open.pop(answer.number, None)
        if request is None:
            return None
        dag_id, events = request.question.dag_id, request.events
        self._asked.pop(dag_id, None)
        if answer.problem is not None or len(answer.mapped) != len(events):
            problem = answer.problem or "the answer does not fit the question"
            if len(events) > 1:
                self._one_by_one.add(dag_id)
                return dag_id
            log.error("a partition mapper cannot be asked; the event is dropped", dag_id=dag_id, why=problem)
            self._write(dag_id, [(events[0], MappedKey(problem=f"its partition mapper cannot be asked: {problem}"))])
        else:
            self._write(dag_id, list(zip(events, answer.mapped, strict=True)))
        return dag_id

    def _write(self, dag_id: str, mapped: list[tuple[UnmappedEvent, MappedKey]]) -> None:
        with self._store.transaction():
            for event, found in mapped:
                self._store.map_event(dag_id, event.event, found, self._epoch)
