"""The group commit, and what happens to a batch that cannot be written as a whole."""

from __future__ import annotations

from collections.abc import Callable

from tradewind.model.errors import Stale, StoreError, StoreRefused
from tradewind.observe.log import Log
from tradewind.store.nouns import Batch, Committed
from tradewind.store.port import Store

log = Log("scheduler")


class GroupWriter:
    """See the module.

    Args:
        set_aside: told of a run whose share alone cannot be written.
    """

    def __init__(self, store: Store, set_aside: Callable[[int], None]) -> None:
        self.store = store
        self._set_aside = set_aside

    def write(self, batch: Batch) -> Committed:
        """Commit. What cannot be written whatever one does (a number out of range) fails alone: then each share goes by itself.

        Raises:
            Stale, StoreError: as the store does; nothing is known to be written.
        """
        try:
            return self.store.commit(batch)
        except StoreRefused as error:
            log.error("a batch cannot be written; its shares are written one by one", error=str(error))
        except (Stale, StoreError):
            raise
        except Exception:
            log.exception("a batch cannot be written; its shares are written one by one")
        whole = Committed({}, [], {})
        failed: set[int] = set()
        for write in batch.runs:
            if write.after & (failed | whole.stale.keys()):
                whole.stale[write.run] = []
                continue
            done = self._write_alone(Batch(batch.epoch, batch.at, [write]), run=write.run)
            if done is None:
                failed.add(write.run)
                self._set_aside(write.run)
            else:
                whole.stale.update(done.stale)
                whole = whole._replace(consumers=whole.consumers | done.consumers)
        for new in batch.new_runs:
            done = self._write_alone(Batch(batch.epoch, batch.at, new_runs=[new]), dag_id=new.dag_id, run_id=new.run_id)
            whole.created.extend(done.created if done is not None else ())
        for position in batch.positions:
            self._write_alone(Batch(batch.epoch, batch.at, positions=[position]), dag_id=position.dag_id)
        for more in batch.more_rows:
            done = self._write_alone(Batch(batch.epoch, batch.at, more_rows=[more]), run=more[0])
            whole.rows_created.update(done.rows_created if done is not None else {})
        return whole

    def _write_alone(self, batch: Batch, **about: object) -> Committed | None:
        try:
            return self.store.commit(batch)
        except StoreRefused as error:
            log.error("this cannot be written; it is left out", error=str(error), **about)
            return None
        except (Stale, StoreError):
            raise
        except Exception:
            log.exception("this cannot be written; it is left out", **about)
            return None
