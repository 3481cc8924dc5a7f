"""Who a server is."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Identity(BaseModel):
    """Who the server is: a position means something only together with this."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["mysql", "mariadb"]
    version: str
    server_id: int
    uuid: str = ""

    def same_server(self, other: Identity) -> bool:
        """Whether positions of both can be compared: by uuid, on MariaDB by server id."""
        return (self.kind, self.uuid, self.server_id if not self.uuid else 0) == (
            other.kind,
            other.uuid,
            other.server_id if not other.uuid else 0,
        )
