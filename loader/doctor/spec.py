"""The spec of the doctor's Spark job."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from loader.materialise.spec import CatalogSettings


class DoctorSpec(BaseModel):
    """Check the catalog, and read an object of the staging root that consists of `text`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    catalog: CatalogSettings
    uri: str
    text: str
