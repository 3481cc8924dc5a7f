"""`state.json` in a data folder: the state of its server, for restarts and for other processes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from .errors import ServerError
from .process import Process
from .programs import Programs, recorded
from .ways import fetch, fetched

_NAME = "state.json"


@dataclass(frozen=True)
class State:
    """The programs, the port and the options of the last start, and the process if it was not stopped."""

    programs: Programs
    port: int
    options: dict[str, str | None]
    process: Process | None


def write(data_dir: Path, state: State) -> None:
    """Replace the state of a data folder; a reader sees the old one or the new one."""
    document = {
        "kind": state.programs.kind,
        "version": state.programs.version,
        "home": str(state.programs.home),
        "port": state.port,
        "options": state.options,
        "pid": state.process.pid if state.process else None,
        "started_at": state.process.started_at if state.process else None,
    }
    partial = data_dir / f".{_NAME}.partial"
    partial.write_text(json.dumps(document, indent=1))
    partial.replace(data_dir / _NAME)


def read(data_dir: Path) -> State | None:
    """The state of a data folder; None when no server was ever started there.

    Raises:
        ServerError: its programs are no longer in the cache and cannot be fetched again, or the file is damaged.
    """
    try:
        document = json.loads((data_dir / _NAME).read_text())
        process = Process(document["pid"], document["started_at"]) if document["pid"] else None
        programs = recorded(Path(document["home"])) or fetched(document["kind"]) or fetch(document["kind"])
        return State(programs, document["port"], document["options"], process)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError) as error:
        raise ServerError(f"{data_dir / _NAME} is damaged ({error!r}); use another data folder") from error
