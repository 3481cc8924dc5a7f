"""`loader ui` as a process, on a staged source whose server does not answer: its pages, its headers, its limits."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from loader.cli.app import app
from loader.errors import UsageError
from loader.page.site import HEADERS
from tests.unit.page.reading import Element, read_page
from tests.unit.pipeline.site import Site, shop

CANARY = "c4n4ry-of-a-secret"
_STRANGERS = ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost.evil.example", ""]


class Served:
    """The process, its address and its files."""

    def __init__(self, folder: Path) -> None:
        log, ends = shop(8)
        self.site = Site(folder, log)
        for end in ends[1::2]:
            self.site.extract(self.site.plan(end))
        self.site.publish(self.site.chain.plans(self.site.generation)[0], "shop.orders", "shop.items")
        self.config = folder / "loader.toml"
        self.config.write_text(
            f'[staging]\nroot = "{self.site.settings.staging_root}"\n[warehouse]\npath = "/w"\n'
            '[warehouse.secrets]\n"jdbc.password" = "env:LAKE_PASSWORD"\n[spark]\njars = "/jars"\n'
            '[sources.shop]\nhost = "127.0.0.1"\nport = 1\nuser = "nobody"\npassword = "env:SHOP_PASSWORD"\n'
            'tables.include = ["shop.*"]\n'
        )
        self.errors = folder / "errors.txt"

    def start(self) -> None:
        command = [sys.executable, "-m", "loader", "--config", str(self.config), "--json", "ui", "--port", "0"]
        secrets = {"SHOP_PASSWORD": CANARY, "LAKE_PASSWORD": CANARY}
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command, env=os.environ | secrets, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self.process.stdout is not None
        self.url = json.loads(self.process.stdout.readline())["url"]
        parts = urlsplit(self.url)
        self.port, self.folder = parts.port, parts.path

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, self.folder + path, headers=headers)
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read().decode()
        connection.close()
        return found

    def page(self, path: str) -> Element:
        status, _, text = self.ask(path)
        assert status == 200
        assert CANARY not in text
        return read_page(text)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    found = Served(tmp_path_factory.mktemp("ui"))
    found.start()
    yield found
    found.process.send_signal(signal.SIGINT)
    assert found.process.wait(30) == 0
    assert CANARY not in found.errors.read_text()
    assert "Traceback" not in found.errors.read_text()


def test_the_pages_of_a_staged_source(served: Served) -> None:
    assert served.page("").rows("Sources") == [
        ["shop", "the server does not answer", "unknown", "unknown", "unknown", "0"]
    ]
    page = served.page("source?name=shop")
    plans = served.site.chain.plans(served.site.generation)
    assert page.rows("Positions") == [
        ["end of the log", "unknown"],
        ["planned", plans[3].stop],
        ["staged", plans[3].stop],
        ["applied to all tables", plans[0].stop],
    ]
    assert [row[:3] for row in page.rows("Intervals")] == [
        [plans[3].start, plans[3].stop, "staged, 2 behind"],
        [plans[2].start, plans[2].stop, "staged, 2 behind"],
        [plans[1].start, plans[1].stop, "staged, 2 behind"],
        [plans[0].start, plans[0].stop, "applied"],
    ]
    assert [row[:3] for row in page.rows("2 of 2 tables")] == [
        ["shop.items", "exact", plans[0].stop],
        ["shop.orders", "exact", plans[0].stop],
    ]
    (panel,) = page.panels()
    assert panel.startswith("the server does not answer\nwhere: source nobody@127.0.0.1:1\nwhy: ")
    assert "what to do: start it or fix the network" in panel
    assert served.page("table?source=shop&name=shop.items").one("h1").text == "shop.items"


def test_every_answer_has_the_headers_of_security(served: Served) -> None:
    for path in ("", "source?name=shop", "style.css", "nothing"):
        headers = served.ask(path)[1]
        assert HEADERS.items() <= headers.items()
        assert headers["Server"].strip() == "binlog-loader"


@pytest.mark.parametrize("host", _STRANGERS)
def test_another_name_is_refused(host: str, served: Served) -> None:
    status, _, text = served.ask("source?name=shop", Host=host)
    assert status == 421
    assert "shop" not in text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8765", "192.0.2.7:80"])
def test_addresses_and_this_machine_are_accepted(host: str, served: Served) -> None:
    assert served.ask("style.css", Host=host)[0] == 200


@pytest.mark.parametrize("path", ["/", "/source?name=shop", "/style.css", "/AAAAAAAAAAAAAAAAAAAAAA/", "/?é"])
def test_whoever_does_not_know_the_path_sees_nothing(path: str, served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port)) as stranger:
        stranger.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        answer = stranger.makefile("rb").read().decode()
    assert answer.startswith("HTTP/1.0 404 ")
    assert answer.endswith("\r\n\r\nThe pages are at the address that loader ui printed.\n")


def test_only_reading_is_answered(served: Served) -> None:
    status, headers, text = served.ask("source?name=shop", "HEAD")
    assert (status, text) == (200, "")
    assert int(headers["Content-Length"]) > 1000
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert served.ask("source?name=shop", method)[0] == 501


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("../loader.toml", 404),
        ("%2e%2e/loader.toml", 404),
        ("source?name=%ff%00", 404),
        ("table?source=shop&name=%ed%a0%80", 200),
    ],
)
def test_odd_addresses_show_no_files(path: str, status: int, served: Served) -> None:
    found, headers, text = served.ask(path)
    assert (found, headers["Content-Type"]) == (status, "text/html; charset=utf-8")
    assert CANARY not in text


def test_browsers_that_leave_and_connections_that_say_nothing_stop_nothing(served: Served) -> None:
    silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(20)]
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", served.port)) as gone:
            gone.sendall(f"GET {served.folder}source?name=shop HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    threads = [threading.Thread(target=served.page, args=("source?name=shop",)) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert served.page("").one("h1").text == "Sources"
    for one in silent:
        one.close()


def test_a_store_that_is_gone_is_said_with_its_cure(tmp_path: Path) -> None:
    found = Served(tmp_path)
    shutil.rmtree(tmp_path / "staging")
    found.start()
    try:
        (panel,) = found.page("source?name=shop").panels()
        assert panel == (
            "nothing was loaded from this source yet\nwhere: source shop\nwhat to do: loader initial-load; if it was loaded"
            " before, first check staging.root: its folder may not be mounted"
        )
    finally:
        found.process.kill()
        found.process.wait()


def test_a_port_in_use(tmp_path: Path) -> None:
    found = Served(tmp_path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        done = CliRunner().invoke(app, ["--config", str(found.config), "ui", "--port", port])
    assert isinstance(done.exception, UsageError)
    assert done.exception.what == "the status pages cannot listen there"
    assert done.exception.where == {"address": "127.0.0.1", "port": port}


def test_an_address_of_another_machine(tmp_path: Path) -> None:
    found = Served(tmp_path)
    done = CliRunner().invoke(app, ["--config", str(found.config), "ui", "--port", "0", "--host", "192.0.2.1"])
    assert isinstance(done.exception, UsageError)
