"""Notes that work on staged files is done."""

from __future__ import annotations

from loader.staging.document import Document


class Loaded(Document):
    """A note that an initial load is in a warehouse: the loader saw it there, or committed it.

    Attributes:
        warehouse: see `CatalogSettings.place`.
    """

    source: str
    table: str
    position: str
    warehouse: str


class Purged(Document):
    """A note that the files of an interval were removed, or are being removed.

    Attributes:
        archive: the prefix that the files were copied to; empty without an archive.
    """

    source: str
    generation: str
    start_seqno: int
    archive: str = ""
