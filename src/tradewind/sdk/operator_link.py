"""Links shown for a task: `operator_extra_links = (MyLink(),)`.

As in Airflow 3, the task process computes a link when the task has ended, and pushes it as an XCom under `xcom_key`. No other
process runs the author's code to show a link.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tradewind.model.run_links import COMPUTED_KEYS

if TYPE_CHECKING:
    from tradewind.execution.task_instance import TaskInstance
    from tradewind.sdk.operator import BaseOperator

log = logging.getLogger("tradewind.task")


class BaseOperatorLink:
    """Subclasses define `name` and `get_link`."""

    operators: ClassVar[Sequence[type[BaseOperator]]] = ()
    """Only for links of plugins: the operator classes that get the link."""

    @property
    def name(self) -> str:
        """The text of the link."""
        raise NotImplementedError(f"{type(self).__name__} does not define name")

    @property
    def xcom_key(self) -> str:
        """The key of the XCom."""
        return f"_link_{type(self).__name__}"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """The URL. `ti_key` has the attributes dag_id, task_id, run_id, try_number and map_index."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_link(operator, *, ti_key)")


def key_of(link: Any) -> str:
    """The XCom key of a link. The link's class need not derive from `BaseOperatorLink`."""
    return str(getattr(link, "xcom_key", None) or f"_link_{type(link).__name__}")


def push_links(task: BaseOperator, ti: TaskInstance) -> None:
    """Push the URLs of the task's links. An error in one link is logged and does not affect the others.

    Links to runs of other DAGs are left out: the API computes them.
    """
    for link in task.operator_extra_links:
        if key_of(link) in COMPUTED_KEYS:
            continue
        try:
            address = link.get_link(operator=task, ti_key=ti.key)
            if address:
                ti.xcom_push(key_of(link), str(address))
        except Exception:
            log.exception("cannot compute the link %s of task %s", type(link).__name__, task.task_id)
