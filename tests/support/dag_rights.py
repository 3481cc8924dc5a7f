"""An auth manager of Airflow in which some users may read the DAGs of one source only."""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

ONLY = "only-"


class DagRights(SimpleAuthManager):
    """A user `only-crm` may do what its role says with the DAGs `crm.*`, and nothing with other DAGs."""

    def is_authorized_dag(self, *, user: Any, details: Any = None, **what: Any) -> bool:
        name = str(user.get_name())
        if name.startswith(ONLY) and not (details and (details.id or "").startswith(f"{name.removeprefix(ONLY)}.")):
            return False
        return super().is_authorized_dag(user=user, details=details, **what)
