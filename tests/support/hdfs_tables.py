"""Tables of a warehouse on HDFS as PyIceberg reads them, from a copy on this machine: it has no client of HDFS."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from hdfs import InsecureClient
from pyiceberg.io import InputFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import StaticTable

from infra.hdfs import HdfsServer

_FOLDER = "copy.folder"


class CopiedFiles(PyArrowFileIO):
    """Reads each file of HDFS at the same path below a folder."""

    def new_input(self, location: str) -> InputFile:
        """Return the copy of a file."""
        return super().new_input(f"{self.properties[_FOLDER]}{urlsplit(location).path}")


def copied_table(server: HdfsServer, user: str, path: str, folder: Path) -> StaticTable:
    """Copy a table of a hadoop catalog, and return it.

    Args:
        server: the file system.
        user: who may read the table.
        path: of the table.
        folder: an empty folder for the copy.
    """
    target = folder / path.strip("/")
    target.parent.mkdir(parents=True)
    InsecureClient(server.web, user=user).download(path, str(target))
    version = (target / "metadata" / "version-hint.text").read_text().strip()
    properties = {"py-io-impl": f"{CopiedFiles.__module__}.{CopiedFiles.__name__}", _FOLDER: str(folder)}
    return StaticTable.from_metadata(f"{path}/metadata/v{version}.metadata.json", properties)
