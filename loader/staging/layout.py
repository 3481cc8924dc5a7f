"""Where staged objects lie: keys made from names and positions alone.

<source>/<generation>/<start seqno, 20 digits>/plan.json
                                              /manifest.json
                                              /published.json
                                              /purged.json
                                              /<attempt>/<schema>/<table>/<schema id>/part-<lognum>-<number>.csv
<source>/<generation>/load/<schema>/<table>/<position seqno, 20 digits>/plan.json, manifest.json, <attempt>/...
                                                                       /loaded.json
<source>/<generation>/filled/<start seqno, 20 digits>/<schema>/<table>.json
<source>/quarantine/<schema>/<table>.json
<source>/refused/<schema>/<table>.json
<source>/paused/<schema>/<table>.json
<source>/overtaken/<schema>/<table>/<position seqno, 20 digits>.json
<source>/outdated/<generation>/<stop seqno, 20 digits>/note.json
<source>/schemas/...                                               see loader.staging.schemas
<source>/skips/...                                                 see loader.staging.notes.skips
"""

from __future__ import annotations

import hashlib
import string

from loader.model.table import TableName

_PLAIN = frozenset((string.ascii_letters + string.digits + "_-").encode())
_LONGEST = 120  # characters of an encoded name; file systems allow 255 bytes


def encode(name: str) -> str:
    """Return any name as one path segment. Different names never get the same segment.

    Bytes other than ASCII letters, digits, `_` and `-` become `!` and two hex digits. A long name keeps its first 40
    characters, followed by `!~` and its SHA-256. No encoded byte looks like `!~`.
    """
    raw = name.encode("utf-8", "surrogatepass")
    text = "".join(chr(byte) if byte in _PLAIN else f"!{byte:02x}" for byte in raw)
    if len(text) <= _LONGEST:
        return text
    return text[:40] + "!~" + hashlib.sha256(raw).hexdigest()


def chain_folder(source: str, generation: str) -> str:
    """Return the folder of all intervals of a generation."""
    return f"{encode(source)}/{encode(generation)}"


def interval_folder(source: str, generation: str, start_seqno: int) -> str:
    """Return the folder of one interval."""
    return f"{chain_folder(source, generation)}/{start_seqno:020d}"


def filled_key(source: str, generation: str, start_seqno: int, table: TableName) -> str:
    """Return the key of a backfill: the manifest of a table that the interval had left out."""
    folder = f"{chain_folder(source, generation)}/filled/{start_seqno:020d}"
    return f"{folder}/{encode(table.schema)}/{encode(table.table)}.json"


def published_key(source: str, generation: str, start_seqno: int) -> str:
    """Return the key of the published record of an interval."""
    return f"{interval_folder(source, generation, start_seqno)}/published.json"


def purged_key(folder: str) -> str:
    """Return the key of the note that the files of the interval in that folder were purged."""
    return f"{folder}/purged.json"


def load_folder(source: str, generation: str, table: TableName) -> str:
    """Return the folder of all initial loads of one table."""
    return f"{chain_folder(source, generation)}/load/{encode(table.schema)}/{encode(table.table)}"


def loaded_key(manifest: str) -> str:
    """Return the key of the note that an initial load is in the warehouse, from the key of its manifest."""
    return f"{manifest.rpartition('/')[0]}/loaded.json"


def quarantine_folder(source: str) -> str:
    """Return the folder of quarantined tables. No generation has this name."""
    return f"{encode(source)}/quarantine"


def quarantine_key(source: str, table: TableName) -> str:
    """Return the key of the quarantine of a table."""
    return f"{quarantine_folder(source)}/{encode(table.schema)}/{encode(table.table)}.json"


def pause_folder(source: str) -> str:
    """Return the folder of paused tables. No generation has this name."""
    return f"{encode(source)}/paused"


def pause_key(source: str, table: TableName) -> str:
    """Return the key of the pause of a table."""
    return f"{pause_folder(source)}/{encode(table.schema)}/{encode(table.table)}.json"


def outdated_folder(source: str, generation: str) -> str:
    """Return the folder of the notes on outdated records of a generation. No generation has its name."""
    return f"{encode(source)}/outdated/{encode(generation)}"


def outdated_key(source: str, generation: str, stop_seqno: int) -> str:
    """Return the key of the note that published records up to this stop may be outdated."""
    return f"{outdated_folder(source, generation)}/{stop_seqno:020d}/note.json"


def overtaken_folder(source: str) -> str:
    """Return the folder of the initial loads that merges have overtaken. No generation has this name."""
    return f"{encode(source)}/overtaken"


def overtaken_key(source: str, table: TableName, seqno: int) -> str:
    """Return the key of the note that merges have overtaken the initial load of a table at a seqno."""
    return f"{overtaken_folder(source)}/{encode(table.schema)}/{encode(table.table)}/{seqno:020d}.json"


def refusal_key(source: str, table: TableName) -> str:
    """Return the key of the note why a table could not be loaded. No generation has the name of its folder."""
    return f"{encode(source)}/refused/{encode(table.schema)}/{encode(table.table)}.json"


def schemas_folder(source: str) -> str:
    """Return the folder of table definitions at a position. No generation has this name."""
    return f"{encode(source)}/schemas"


def skips_folder(source: str) -> str:
    """Return the folder of skipped transactions. No generation has this name."""
    return f"{encode(source)}/skips"


def part_key(folder: str, attempt: str, table: TableName, schema_id: str, part: str) -> str:
    """Return the key of one CSV part, such as `000054-0003`."""
    return f"{folder}/{attempt}/{encode(table.schema)}/{encode(table.table)}/{schema_id}/part-{part}.csv"
