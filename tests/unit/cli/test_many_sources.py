"""A source whose server is silent delays no other."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from socket import create_server, socket
from threading import Event, Thread

import pytest

from loader.config.file import load_config
from loader.page.reports.report_cache import ReportCache
from loader.page.reports.source_report import ReportReader
from loader.pipeline import chain_of, source_lag
from loader.pipeline.reports import lag
from tests.unit.pipeline.site import GENERATION

_SOURCES = 20
_SECONDS = 0.5


class SilentServer:
    """Accepts connections and never answers.

    Args:
        enough: it closes all connections as soon as so many are open at once.

    Attributes:
        most: connections that were open at once.
    """

    def __init__(self, enough: int) -> None:
        self._enough, self.most = enough, 0
        self._open: list[socket] = []
        self._done = Event()
        self._listener = create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with DefaultSelector() as selector, self._listener:
            selector.register(self._listener, EVENT_READ)
            while not self._done.is_set():
                for key, _ in selector.select(0.05):
                    self._answer(selector, key.fileobj)  # type: ignore[arg-type]
            for one in self._open:
                one.close()

    def _answer(self, selector: DefaultSelector, ready: socket) -> None:
        if ready is self._listener:
            accepted, _ = ready.accept()
            selector.register(accepted, EVENT_READ)
            self._open.append(accepted)
            self.most = max(self.most, len(self._open))
        elif not _data(ready):
            self._close(selector, ready)
        if len(self._open) >= self._enough:
            for one in list(self._open):
                self._close(selector, one)

    def _close(self, selector: DefaultSelector, one: socket) -> None:
        selector.unregister(one)
        self._open.remove(one)
        one.close()

    def stop(self) -> None:
        """Close all connections."""
        self._done.set()
        self._thread.join()


def _data(one: socket) -> bytes:
    with suppress(OSError):
        return one.recv(1024)
    return b""


@pytest.fixture
def silent() -> Iterator[SilentServer]:
    """A server that lets nobody go before all sources ask it at once."""
    server = SilentServer(_SOURCES)
    yield server
    server.stop()


@pytest.fixture
def config(tmp_path: Path, silent: SilentServer) -> Path:
    """Sources that have begun: `up0` and so on, whose server is silent, and `down`, whose server does not exist."""
    text = f'[staging]\nroot = "file://{tmp_path}/staging"\n[warehouse]\npath = "/w"\n[spark]\njars = "/jars"\n'
    ports = {f"up{number}": silent.port for number in range(_SOURCES)} | {"down": 1}
    for name, port in ports.items():
        text += f'[sources.{name}]\nhost = "127.0.0.1"\nport = {port}\nuser = "u"\ntables.include = ["shop.*"]\n'
    file = tmp_path / "loader.toml"
    file.write_text(text, encoding="utf-8")
    for name in ports:
        chain_of(load_config(str(file)).source(name)).begin(GENERATION.model_copy(update={"source": name}))
    return file


def test_gauges_ask_all_servers_at_once(config: Path, silent: SilentServer) -> None:
    argv = [sys.executable, "-m", "loader", "--config", str(config), "status", "--format", "prometheus"]
    output = subprocess.run(
        argv, check=True, capture_output=True, text=True
    ).stdout  # a process that has no imports yet
    found = dict(re.findall(r'^binlog_loader_(\w+\{source="\w+"\}) (\S+)$', output, re.MULTILINE))
    for name in ("down", *(f"up{number}" for number in range(_SOURCES))):
        assert (found[f'up{{source="{name}"}}'], found[f'server_up{{source="{name}"}}']) == ("1", "0")
    assert silent.most == _SOURCES


def test_status_pages_ask_all_servers_at_once(config: Path, silent: SilentServer) -> None:
    loaded = load_config(str(config))
    reports = ReportCache(ReportReader(loaded.source).read, patience=30).get(list(loaded.sources))
    assert [name for name, one in reports.items() if not (one.report and one.report.status)] == []
    assert silent.most == _SOURCES


def test_a_status_does_not_wait_as_long_as_a_statement_may_run(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "_PATIENCE_SECONDS", _SECONDS)
    settings = load_config(str(config)).source("up0")
    assert settings.server.read_timeout_seconds == 600
    settings = settings.model_copy(
        update={"server": settings.server.model_copy(update={"read_timeout_seconds": 20 * _SECONDS})}
    )
    began = time.monotonic()
    unreachable = source_lag(settings).unreachable
    assert time.monotonic() - began < 10 * _SECONDS
    assert unreachable is not None
    assert (unreachable["what"], "timed out" in unreachable["why"]) == ("the server does not answer", True)
