"""The process of a REST catalog: HTTP in Python, and Iceberg's `CatalogHandlers` in a JVM.

`CatalogHandlers` is Iceberg's implementation of the server's side of the protocol. The routes and the status of each
error are those of the REST catalog of Iceberg's own tests (RESTCatalogAdapter).

Protocol: https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml
"""

from __future__ import annotations

import argparse
import json
import secrets
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from infra.servers.process import HOST

_REST = "org.apache.iceberg.rest"
_JACKSON = "org.apache.iceberg.shaded.com.fasterxml.jackson"
_STATUS = {
    "IllegalArgumentException": 400,
    "ValidationException": 400,
    "UnsupportedOperationException": 406,
    "NamespaceNotEmptyException": 409,
    "AlreadyExistsException": 409,
    "CommitFailedException": 409,
    "NoSuchNamespaceException": 404,
    "NoSuchTableException": 404,
    "NoSuchViewException": 404,
    "UnprocessableEntityException": 422,
}

Reply = tuple[int, str]


class Backend:
    """JDBC catalogs on SQLite in a JVM, one for each warehouse, and the handlers of requests on them.

    Args:
        jars: the class path besides that of Spark.
        database: the file of the catalogs.
        warehouse: the location of the tables of clients that name no warehouse.
    """

    def __init__(self, jars: str, database: str, warehouse: str) -> None:
        import pyspark

        spark = Path(pyspark.__file__).parent / "jars"
        (jar,) = spark.glob("py4j-*.jar")
        port, token = launch_gateway(
            jarpath=str(jar),
            classpath=f"{spark}/*:{jars}",
            javaopts=["-Xmx256m", "-XX:TieredStopAtLevel=1"],
            die_on_exit=True,
            enable_auth=True,
        )
        parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
        self._gateway = JavaGateway(gateway_parameters=parameters)
        self._handlers = self.java(f"{_REST}.CatalogHandlers")
        self._mapper = self._new_mapper()
        self._uri = f"jdbc:sqlite:{database}?busy_timeout=60000&journal_mode=WAL"
        self._conf = self.java("org.apache.hadoop.conf.Configuration")()
        self._catalogs: dict[str, Any] = {}
        self._opening = threading.Lock()
        self.warehouse = warehouse
        self.all_snapshots = self.java(f"{_REST}.RESTCatalogProperties$SnapshotMode").ALL

    def java(self, name: str) -> Any:
        """Return a class of the JVM by its full name."""
        return getattr(self._gateway.jvm, name)

    def catalog(self, warehouse: str) -> Any:
        """Return the catalog of a warehouse, by the location of its tables or a name."""
        location = warehouse if "://" in warehouse else f"{self.warehouse}/{warehouse}"
        with self._opening:
            if warehouse not in self._catalogs:
                properties = {"uri": self._uri, "warehouse": location, "jdbc.schema-version": "V1"}
                load = self.java("org.apache.iceberg.CatalogUtil").loadCatalog
                kind = "org.apache.iceberg.jdbc.JdbcCatalog"
                self._catalogs[warehouse] = load(kind, warehouse, properties, self._conf)
        return self._catalogs[warehouse]

    def ask(self, catalog: Any, handler: str, *arguments: Any) -> str:
        """Return the reply of a handler as JSON; empty if it has none."""
        reply = getattr(self._handlers, handler)(catalog, *arguments)
        return "" if reply is None else str(self._mapper.writeValueAsString(reply))

    def request(self, kind: str, body: str) -> Any:
        """Return a request of a kind, parsed from JSON."""
        name = f"{_REST}.requests.{kind}"
        return self._mapper.readValue(body, self.java("java.lang.Class").forName(name))

    def namespace(self, name: str) -> Any:
        """Return a namespace by its name in an address."""
        levels = name.split("\x1f")
        array = self._gateway.new_array(self.java("java.lang.String"), len(levels))
        for place, level in enumerate(levels):
            array[place] = level
        return self.java("org.apache.iceberg.catalog.Namespace").of(array)

    def table(self, namespace: str, name: str) -> Any:
        """Return a table's identifier."""
        return self.java("org.apache.iceberg.catalog.TableIdentifier").of(self.namespace(namespace), name)

    def _new_mapper(self) -> Any:
        mapper = self.java(f"{_JACKSON}.databind.ObjectMapper")()
        fields = self.java(f"{_JACKSON}.annotation.PropertyAccessor").FIELD
        mapper.setVisibility(fields, self.java(f"{_JACKSON}.annotation.JsonAutoDetect$Visibility").ANY)
        feature = self.java(f"{_JACKSON}.databind.DeserializationFeature").FAIL_ON_UNKNOWN_PROPERTIES
        mapper.configure(feature, False)
        mapper.setPropertyNamingStrategy(self.java(f"{_JACKSON}.databind.PropertyNamingStrategies$KebabCaseStrategy")())
        self.java(f"{_REST}.RESTSerializers").registerAll(mapper)
        return mapper


class Requests:
    """The requests on one warehouse."""

    def __init__(self, backend: Backend, warehouse: str) -> None:
        self._backend = backend
        self._catalog = backend.catalog(warehouse)

    def route(self, method: str, parts: list[str], query: dict[str, list[str]], body: str) -> Reply:
        """Execute a request. `parts` are those of its address after the warehouse."""
        match [method, *parts]:
            case ["POST", "tables", "rename"]:
                self._ask("renameTable", self._backend.request("RenameTableRequest", body))
                return 204, ""
            case [_, "namespaces", *rest] if len(rest) < 2 or rest[1] == "properties":
                return self._namespaces(method, rest, body, query.get("parent", [""])[0])
            case [_, "namespaces", namespace, "tables"]:
                return self._tables(method, namespace, body)
            case [_, "namespaces", namespace, "tables", table]:
                return self._table(method, namespace, table, body, purge=query.get("purgeRequested") == ["true"])
            case ["POST", "namespaces", _, "tables", _, "metrics"]:
                return 204, ""
        return 404, _error(404, "NoSuchRoute", f"{method} {parts}")

    def _namespaces(self, method: str, rest: list[str], body: str, parent: str) -> Reply:
        backend = self._backend
        match [method, *rest]:
            case ["GET"]:
                empty = backend.java("org.apache.iceberg.catalog.Namespace").empty()
                return 200, self._ask("listNamespaces", backend.namespace(parent) if parent else empty)
            case ["POST"]:
                return 200, self._ask("createNamespace", backend.request("CreateNamespaceRequest", body))
            case ["GET" | "HEAD", name]:
                return 200, self._ask("loadNamespace", backend.namespace(name))
            case ["DELETE", name]:
                self._ask("dropNamespace", backend.namespace(name))
                return 204, ""
            case ["POST", name, "properties"]:
                request = backend.request("UpdateNamespacePropertiesRequest", body)
                return 200, self._ask("updateNamespaceProperties", backend.namespace(name), request)
        return 405, _error(405, "NotAllowed", method)

    def _tables(self, method: str, namespace: str, body: str) -> Reply:
        if method == "GET":
            return 200, self._ask("listTables", self._backend.namespace(namespace))
        request = self._backend.request("CreateTableRequest", body)
        handler = "stageTableCreate" if request.stageCreate() else "createTable"
        return 200, self._ask(handler, self._backend.namespace(namespace), request)

    def _table(self, method: str, namespace: str, name: str, body: str, *, purge: bool) -> Reply:
        table = self._backend.table(namespace, name)
        if method == "POST":
            return 200, self._ask("updateTable", table, self._backend.request("UpdateTableRequest", body))
        if method == "DELETE":
            self._ask("purgeTable" if purge else "dropTable", table)
            return 204, ""
        return 200, self._ask("loadTable", table, self._backend.all_snapshots)

    def _ask(self, handler: str, *arguments: Any) -> str:
        return self._backend.ask(self._catalog, handler, *arguments)


def route(backend: Backend, method: str, address: str, body: str) -> Reply:
    """Execute one request of the protocol. Return the status and the JSON of the reply.

    The client gets its warehouse as the prefix of all other addresses.
    """
    parts = [unquote(part) for part in urlsplit(address).path.strip("/").split("/")]
    query = parse_qs(urlsplit(address).query)
    if parts == ["v1", "config"]:
        warehouse = query.get("warehouse", [backend.warehouse])[0]
        return 200, json.dumps({"defaults": {}, "overrides": {"prefix": quote(warehouse, safe="")}})
    return Requests(backend, parts[1]).route(method, parts[2:], query, body)


def answer(backend: Backend, method: str, address: str, body: str) -> Reply:
    """Execute one request; see `route`. An exception of the JVM becomes a reply."""
    try:
        return route(backend, method, address, body)
    except Py4JJavaError as error:
        thrown = error.java_exception
        kind = str(thrown.getClass().getSimpleName())
        status = _STATUS.get(kind, 500)
        return status, _error(status, kind, str(thrown.getMessage()))


def _error(status: int, kind: str, message: str) -> str:
    return json.dumps({"error": {"code": status, "type": kind, "message": message}})


class Guard:
    """The tokens of a catalog with one client; without a credential everybody may do everything."""

    def __init__(self, credential: str) -> None:
        self._credential = credential
        self._token = secrets.token_hex(16)

    def admits(self, header: str) -> bool:
        """Return whether a request with this header `Authorization` is allowed."""
        return not self._credential or header == f"Bearer {self._token}"

    def token(self, body: str) -> Reply:
        """Answer a request for a token: RFC 6749, section 4.4."""
        form = {name: values[0] for name, values in parse_qs(body).items()}
        if f"{form.get('client_id')}:{form.get('client_secret')}" != self._credential:
            return 401, json.dumps({"error": "invalid_client", "error_description": "unknown client"})
        issued = "urn:ietf:params:oauth:token-type:access_token"
        token = {"access_token": self._token, "token_type": "bearer", "expires_in": 3600, "issued_token_type": issued}
        return 200, json.dumps(token)


def handler_of(work: Callable[[str, str, str], Reply], guard: Guard) -> type[BaseHTTPRequestHandler]:
    """Return the class that handles the connections of a catalog."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            if self.path.endswith("/oauth/tokens"):
                status, text = guard.token(body)
            elif not guard.admits(self.headers.get("Authorization", "")):
                status, text = 401, _error(401, "NotAuthorizedException", "no valid token")
            else:
                status, text = work(self.command, self.path, body)
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815 - the names that http.server calls

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    for name in ("port", "jars", "database", "warehouse"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("credential", "certificate"):
        parser.add_argument(f"--{name}", default="")
    options = parser.parse_args()
    backend = Backend(options.jars, options.database, options.warehouse)

    def work(method: str, address: str, body: str) -> Reply:
        return answer(backend, method, address, body)

    server = ThreadingHTTPServer((HOST, int(options.port)), handler_of(work, Guard(options.credential)))
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
