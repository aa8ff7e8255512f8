"""Operators whose function runs in an existing interpreter. DAG files import them from `tradewind.operators.python`."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tradewind.model.errors import DefinitionError
from tradewind.operators.branch import BranchOnResult
from tradewind.operators.callables import DecoratedCallableOperator
from tradewind.operators.python import PythonOperator
from tradewind.operators.separate_interpreter import SeparateInterpreterOperator
from tradewind.sdk.exceptions import AirflowException

if TYPE_CHECKING:
    from collections.abc import Iterator


class ExternalPythonOperator(SeparateInterpreterOperator):
    """Calls a function in an existing Python interpreter.

    Args:
        python: path of the interpreter; a template.
        others: see `SeparateInterpreterOperator`.
    """

    template_fields: Collection[str] = ("python", *PythonOperator.template_fields)

    def __init__(self, *, python: str | os.PathLike[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not python:
            raise DefinitionError(f"{self._name_in_errors()}: python is {python!r}; it must be the path of an interpreter")
        self.python = python

    @contextmanager
    def interpreter(self) -> Iterator[str]:
        path = os.fspath(self.python)
        if not os.access(path, os.X_OK) or os.path.isdir(path):
            raise AirflowException(
                f"python of task {self.task_id!r} is {path!r}, which is not an executable file; the path of this process's "
                f"interpreter is {sys.executable}"
            )
        yield path


class BranchExternalPythonOperator(BranchOnResult, ExternalPythonOperator):
    """Like `BranchPythonOperator`, with the function in an existing interpreter."""


class ExternalPythonDecoratedOperator(DecoratedCallableOperator, ExternalPythonOperator):
    """The operator of `@task.external_python`."""

    template_fields: Collection[str] = ExternalPythonOperator.template_fields
    custom_operator_name = "@task.external_python"


class BranchExternalPythonDecoratedOperator(DecoratedCallableOperator, BranchExternalPythonOperator):
    """The operator of `@task.branch_external_python`."""

    template_fields: Collection[str] = ExternalPythonOperator.template_fields
    custom_operator_name = "@task.branch_external_python"
