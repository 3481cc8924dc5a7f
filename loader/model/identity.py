"""The identity of a server."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Identity(BaseModel):
    """Identifies a server. A position is only valid together with the identity of its server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["mysql", "mariadb"]
    version: str
    server_id: int
    uuid: str = ""

    def __str__(self) -> str:
        """Such as `mysql 8.4.3, server id 1, UUID 3e11fa47-...`."""
        text = f"{self.kind} {self.version}, server id {self.server_id}"
        return f"{text}, UUID {self.uuid}" if self.uuid else text

    def same_server(self, other: Identity) -> bool:
        """Return whether positions of both can be compared: they have the same uuid or, on MariaDB, server id."""
        return (self.kind, self.uuid, self.server_id if not self.uuid else 0) == (
            other.kind,
            other.uuid,
            other.server_id if not other.uuid else 0,
        )
