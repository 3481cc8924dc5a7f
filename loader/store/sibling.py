"""Places next to a staging root, on the same bucket, name node or file system, that its client can write."""

from __future__ import annotations

from urllib.parse import urlsplit

from loader.store.address import SIGNED, LocalOptions

_SCHEMES = {"s3a": "s3", "s3n": "s3", "": "file"}


def sibling_folder(root: str, location: str) -> str | None:
    """Return the address of the folder of a file, with the options of a staging root.

    Return None if the file is not on the bucket, the name node or the file system of the root.

    Args:
        root: address of a store, as `open_store` takes it.
        location: of a file, as Hadoop writes it: `s3a://bucket/folder/name`, `hdfs://host:port/folder/name`,
            `file:/folder/name` or `/folder/name`.
    """
    own, _, options = root.partition(SIGNED)[0].partition("?")
    mine, other = urlsplit(own), urlsplit(location)
    scheme = _SCHEMES.get(other.scheme, other.scheme)
    if (scheme, other.netloc) != (mine.scheme, mine.netloc) or other.query or other.fragment:
        return None
    folder = other.path.rpartition("/")[0]
    if not folder:
        return None
    address = f"{scheme}://{other.netloc}{folder}"
    if scheme == "file":
        return LocalOptions(shared=True).address(address)  # readers of tables are other users
    return f"{address}?{options}" if options else address
