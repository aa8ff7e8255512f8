"""The argument `deadline` of a DAG."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.sdk.test_kept_arguments import define
from tradewind import DAG, AsyncCallback, BaseNotifier, BaseOperator, DeadlineAlert, DeadlineReference, SyncCallback
from tradewind.model.definition import DeadlineDefinition
from tradewind.model.errors import DefinitionError, NotYetSupported
from tradewind.model.moments import SECOND


def page(text: str, context: Any = None) -> None:
    pass


def alert(reference: Any = DeadlineReference.DAGRUN_QUEUED_AT, **fields: Any) -> DeadlineAlert:
    given = {"interval": timedelta(seconds=5), "callback": AsyncCallback(page, {"text": "late"}), **fields}
    return DeadlineAlert(reference, **given)


def test_deadlines_are_in_the_definition() -> None:
    many = [
        alert(name="slow"),
        alert(DeadlineReference.DAGRUN_LOGICAL_DATE, callback=SyncCallback("ops.pager.page", executor="LocalExecutor")),
        alert(DeadlineReference.FIXED_DATETIME(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))),
        alert(DeadlineReference.AVERAGE_RUNTIME(5), interval=timedelta(0)),
        alert(DeadlineReference.AVERAGE_RUNTIME(max_runs=5, min_runs=2)),
    ]
    assert define(DAG("d", deadline=many)).deadlines == (
        DeadlineDefinition("queued_at", 5 * SECOND, name="slow", callback="page"),
        DeadlineDefinition("logical_date", 5 * SECOND, callback="ops.pager.page"),
        DeadlineDefinition("fixed", 5 * SECOND, at=SECOND, callback="page"),
        DeadlineDefinition("average", 0, max_runs=5, min_runs=5, callback="page"),
        DeadlineDefinition("average", 5 * SECOND, max_runs=5, min_runs=2, callback="page"),
    )
    assert len(define(DAG("d", deadline=alert())).deadlines) == 1
    assert define(DAG("d", deadline=None)).deadlines == ()


def test_each_sla_is_in_the_definition_once() -> None:
    with DAG("d", default_args={"sla": timedelta(seconds=2)}) as dag:
        BaseOperator("a")
        BaseOperator("b")
        BaseOperator("c", sla=timedelta(seconds=1))
    assert define(dag).slas == (SECOND, 2 * SECOND)
    assert define(dag).warnings == ()


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: DAG("d", deadline="soon"), r"DAG 'd' .*deadline has 's'; it must be a DeadlineAlert"),
        (lambda: DAG("d", deadline=[1]), r"deadline has 1"),
        (lambda: alert(callback=page), r"wrap it in AsyncCallback"),
        (lambda: AsyncCallback(7), r"it must be a function or its import path"),  # type: ignore[arg-type]
        (lambda: DeadlineReference.AVERAGE_RUNTIME(2, 3), r"1 ≤ min_runs ≤ max_runs"),
    ],
)
def test_invalid_deadlines_are_errors(made: Any, sentence: str) -> None:
    with pytest.raises(DefinitionError, match=sentence):
        made()


@pytest.mark.parametrize("given", [{"reference": object()}, {"interval": "a variable"}])
def test_deadlines_that_need_user_code_in_the_scheduler_are_errors(given: dict[str, Any]) -> None:
    with pytest.raises(NotYetSupported):
        alert(**given)


def test_a_callback_is_found_by_its_path() -> None:
    assert AsyncCallback("tradewind.sdk.notifier.BaseNotifier").load() is BaseNotifier
    assert AsyncCallback(page).load() is page
