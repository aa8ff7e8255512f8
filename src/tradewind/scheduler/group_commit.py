"""The group commit, and how a batch is written in parts when it cannot be written as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tradewind.model.errors import Stale, StoreError, StoreRefused
from tradewind.model.rows import Batch, Committed
from tradewind.observe.log import Log
from tradewind.store.port import Store

log = Log("scheduler")


class Written(NamedTuple):
    """The result of a commit, and which parts of the batch the store refused."""

    committed: Committed
    schedules: dict[str, str]
    """DAG → why its next run, or the position of its schedule, was refused. The position in the store is unchanged."""
    rows: dict[int, str]
    """Run → why its further task-instance rows were refused."""


class GroupWriter:
    """See the module.

    Args:
        quarantine_run: called for a run whose changes alone cannot be written.
    """

    def __init__(self, store: Store, quarantine_run: Callable[[int], None]) -> None:
        self.store = store
        self._quarantine_run = quarantine_run

    def write(self, batch: Batch) -> Written:
        """Commit a batch. If the store refuses it (a number out of range), each part is committed alone, so that only one fails.

        A part is the changes of one run, one new run with the new position of its schedule, or one schedule position.

        Raises:
            Stale, StoreError: as the store raises them; it is not known whether anything was written.
        """
        try:
            return Written(self.store.commit(batch), {}, {})
        except StoreRefused as error:
            log.error("a batch cannot be written; its parts are written one by one", error=str(error))
        except (Stale, StoreError):
            raise
        except Exception:
            log.exception("a batch cannot be written; its parts are written one by one")
        whole = Written(Committed({}, [], {}), {}, {})
        whole = self._write_runs(batch, whole)
        whole = self._write_schedules(batch, whole)
        for more in batch.more_rows:
            done = self._write_alone(Batch(batch.epoch, batch.at, more_rows=[more]), run=more[0])
            if isinstance(done, str):
                whole.rows[more[0]] = done
            else:
                whole.committed.rows_created.update(done.rows_created)
        return whole

    def _write_runs(self, batch: Batch, whole: Written) -> Written:
        failed: set[int] = set()
        stale, consumers = whole.committed.stale, whole.committed.consumers
        for write in batch.runs:
            if write.after & (failed | stale.keys()):
                stale[write.run] = []
                continue
            done = self._write_alone(Batch(batch.epoch, batch.at, [write]), run=write.run)
            if isinstance(done, str):
                failed.add(write.run)
                self._quarantine_run(write.run)
            else:
                stale.update(done.stale)
                consumers |= done.consumers
        return whole._replace(committed=whole.committed._replace(consumers=consumers))

    def _write_schedules(self, batch: Batch, whole: Written) -> Written:
        """Write new runs and positions one by one, in order. After a refusal the later runs of the same DAG are not written."""
        refused, moved = whole.schedules, whole.committed.moved
        parts = [(new.run.dag_id, new.run.run_id, Batch(batch.epoch, batch.at, new_runs=[new])) for new in batch.new_runs]
        parts += [(position.dag_id, "", Batch(batch.epoch, batch.at, positions=[position])) for position in batch.positions]
        for dag_id, run_id, part in parts:
            if dag_id in refused:
                continue
            done = self._write_alone(part, dag_id=dag_id, run_id=run_id)
            if isinstance(done, str):
                refused[dag_id] = f"{run_id}: {done}" if run_id else done
            else:
                whole.committed.created.extend(done.created)
                moved |= done.moved
        return whole._replace(committed=whole.committed._replace(moved=moved))

    def _write_alone(self, batch: Batch, **about: object) -> Committed | str:
        """Return the result of committing one part; a sentence if the store refused it."""
        try:
            return self.store.commit(batch)
        except StoreRefused as error:
            log.error("this cannot be written now; it is tried again later", error=str(error), **about)
            return str(error)
        except (Stale, StoreError):
            raise
        except Exception as error:
            log.exception("this cannot be written now; it is tried again later", **about)
            return f"{type(error).__name__}: {error}"
