"""What the doctor's Spark job is told."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from loader.materialise.spec import CatalogSettings


class DoctorSpec(BaseModel):
    """Look at the catalog, and read an object of the staging root, whose whole text is `text`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    catalog: CatalogSettings
    uri: str
    text: str
