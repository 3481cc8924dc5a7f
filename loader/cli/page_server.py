"""The HTTP server of `loader ui`. It answers GET and HEAD below a path that only its user knows.

Other users of the machine can connect to the port, but they do not know the path.
"""

from __future__ import annotations

import logging
import re
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlsplit

from loader.errors import UsageError
from loader.page.site import HEADERS, Answer, Site
from loader.visible_text import visible

_LOG = logging.getLogger(__name__)
_HOST = re.compile(r"(?P<name>\[[^]]*\]|[^:]*)(?::\d+)?")
_PLAIN = "text/plain; charset=utf-8"
_IDLE_SECONDS = 30
"""After this time without a request a connection is closed."""


class PageServer(ThreadingHTTPServer):
    """Serves a site to browsers on this machine, or to others if it listens on their network.

    Args:
        site: the pages.
        address: of this machine, or its name.
        port: 0 for any free one.

    Attributes:
        site: the pages.
        folder: the random path of the pages.
    """

    daemon_threads = True
    request_queue_size = 64
    """A browser opens several connections at once. With a full queue, the next one waits for a second."""

    def __init__(self, site: Site, address: str, port: int) -> None:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = found[0][0]
        self.site, self._address, self.folder = site, address, f"/{secrets.token_urlsafe(16)}/"
        super().__init__((address, port), _Handler)

    @property
    def url(self) -> str:
        """The address of the pages."""
        name = f"[{self._address}]" if ":" in self._address else self._address
        return f"http://{name}:{self.server_port}{self.folder}"

    def server_bind(self) -> None:
        """See TCPServer. HTTPServer asks the name server for a name, which is not needed and can take long."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_port = self.socket.getsockname()[1]

    def handle_error(self, request: object, client_address: object) -> None:
        """Log an error of a connection, unless the browser closed it."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            _LOG.exception("a request failed")

    def accepts(self, host: str) -> bool:
        """Return whether a request for that host is for this server.

        A page of another site can let its name point to this machine, and then read the answers (DNS rebinding). It
        cannot do so with an IP address, `localhost`, or the name that the user chose.
        """
        match = _HOST.fullmatch(host)
        name = match["name"].strip("[]").lower() if match else ""
        if name in {"localhost", self._address.lower()}:
            return bool(name)
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


@contextmanager
def serving(site: Site, address: str, port: int) -> Iterator[PageServer]:
    """Listen on an address for the block. Ctrl-C ends the block.

    Raises:
        UsageError: the address is not one of this machine, or the port is in use.
    """
    try:
        server = PageServer(site, address, port)
    except OSError as error:
        raise UsageError(
            "the status pages cannot listen there",
            why=str(error),
            hint="choose another port or address: loader ui --port 0 --host 127.0.0.1",
            address=address,
            port=port,
        ) from error
    with server, suppress(KeyboardInterrupt):
        yield server


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version, sys_version = "binlog-loader", ""
    timeout = _IDLE_SECONDS

    def do_GET(self) -> None:
        """Send a page."""
        answer = self._answer()
        self._send(answer)
        self.wfile.write(answer.body)

    def do_HEAD(self) -> None:
        """Send the headers of a page."""
        self._send(self._answer())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Log nothing."""

    def _answer(self) -> Answer:
        if not self.server.accepts(self.headers.get("Host", "")):
            text = "This server is not known by that name. Start it with --host NAME to use a name.\n"
            return Answer(HTTPStatus.MISDIRECTED_REQUEST, _PLAIN, text.encode())
        folder, size = self.server.folder, len(self.server.folder)
        if not secrets.compare_digest(self.path[:size].encode(), folder.encode()):
            text = "The pages are at the address that loader ui printed.\n"
            return Answer(HTTPStatus.NOT_FOUND, _PLAIN, text.encode())
        try:
            parts = urlsplit(self.path)
            return self.server.site.answer(parts.path[size:], dict(parse_qsl(parts.query)))
        except Exception:
            _LOG.exception("the page %s could not be made", visible(self.path[size:]))
            text = "The page could not be made. The output of loader ui has the reason.\n"
            return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, _PLAIN, text.encode())

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in (HEADERS | {"Content-Type": answer.media_type}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
