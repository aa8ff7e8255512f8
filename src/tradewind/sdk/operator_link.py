"""Links that people are shown beside a task: `operator_extra_links = (MyLink(),)`.

A link is worked out in the task's process when the task has come to something, and pushed as an XCom under `xcom_key`, as in
Airflow 3: nobody runs the author's code to show a page.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from tradewind.execution.task_instance import TaskInstance
    from tradewind.sdk.operator import BaseOperator

log = logging.getLogger("tradewind.task")


class BaseOperatorLink:
    """Subclasses give `name` and write `get_link`."""

    operators: ClassVar[Sequence[type[BaseOperator]]] = ()
    """Only for links of plugins: the operators that get it."""

    @property
    def name(self) -> str:
        """What stands on the button."""
        raise NotImplementedError(f"{type(self).__name__} does not define name")

    @property
    def xcom_key(self) -> str:
        """The XCom's key."""
        return f"_link_{type(self).__name__}"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        """The address. `ti_key` has dag_id, task_id, run_id, try_number and map_index."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_link(operator, *, ti_key)")


def key_of(link: Any) -> str:
    """The XCom key of a link, also of one that derives from nothing."""
    return str(getattr(link, "xcom_key", None) or f"_link_{type(link).__name__}")


def push_links(task: BaseOperator, ti: TaskInstance) -> None:
    """Push the addresses of the task's links. One that fails is logged, and missing."""
    for link in task.operator_extra_links:
        try:
            address = link.get_link(operator=task, ti_key=ti.key)
            if address:
                ti.xcom_push(key_of(link), str(address))
        except Exception:
            log.exception("the link %s of task %s cannot be worked out", type(link).__name__, task.task_id)
