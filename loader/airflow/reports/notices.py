"""What people were notified of and is not over yet, in variables of Airflow.

They last from run to run, for runs without a logical date as well. People see them in Airflow under Admin, Variables.
Whoever deletes one is notified again.
"""

from __future__ import annotations

import json
from typing import Any

from airflow.sdk import Variable

from loader.dag_settings import dag_key

_DESCRIPTION = "binlog-loader: what people were notified of; delete it to be notified again"


class Notices:
    """The notices of a source.

    Args:
        source: its name.
    """

    def __init__(self, source: str) -> None:
        self._prefix = f"binlog_loader.{dag_key(source)}.notified"

    def get(self, name: str) -> Any:
        """Return what is noted under a name; None for nothing."""
        text = Variable.get(self._key(name), default=None)
        return None if text is None else json.loads(text)

    def put(self, name: str, value: Any) -> None:
        """Note a value of JSON."""
        Variable.set(self._key(name), json.dumps(value), description=_DESCRIPTION)

    def end(self, name: str) -> None:
        """Forget what is noted under a name."""
        if self.get(name) is not None:
            Variable.delete(self._key(name))

    def _key(self, name: str) -> str:
        return f"{self._prefix}.{name}"
