"""The decorator of tasks without Spark. Their links lead to the page of the source, and to that of their error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk.bases.decorator import DecoratedOperator, task_decorator_factory

from loader.airflow.reports.errors import TaskFailed
from loader.airflow.reports.links import ErrorLink, LinkedOperator, StatusLink, TableLink

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.bases.decorator import TaskDecorator


class LinkedTaskOperator(LinkedOperator, DecoratedOperator, PythonOperator):
    """Runs a function as Airflow's `@task` does, and has links. The function's argument `source` names the source.

    Args:
        python_callable: the function.
        op_args: its positional arguments. (templated)
        op_kwargs: its other arguments. (templated)
        kwargs: of BaseOperator.
    """

    custom_operator_name: ClassVar[str] = "@task"
    template_fields: Sequence[str] = ("templates_dict", "op_args", "op_kwargs")
    operator_extra_links = (StatusLink(), TableLink(), ErrorLink())

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Sequence[Any],
        op_kwargs: Mapping[str, Any],
        **kwargs: Any,
    ) -> None:
        run: dict[str, Any] = {"python_callable": python_callable, "op_args": op_args, "op_kwargs": op_kwargs}
        super().__init__(kwargs_to_upstream=run, **run, **kwargs)

    def execute(self, context: Context) -> Any:
        """Run the function.

        Raises:
            TaskFailed: the function ended with an error.
        """
        self.source_name = str(self.op_kwargs.get("source") or "")
        try:
            return super().execute(context)
        except TaskFailed as failed:
            self.link_error(failed.error)
            raise


linked_task = cast("TaskDecorator", partial(task_decorator_factory, decorated_operator_class=LinkedTaskOperator))
"""Makes tasks of functions, as Airflow's `@task` does. See LinkedTaskOperator."""
