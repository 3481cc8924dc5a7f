"""A receiver of OpenTelemetry metrics on this machine: an HTTP server that keeps what it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from gzip import decompress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import NumberDataPoint

_PATH = "/v1/metrics"


@dataclass
class OtlpReceiver:
    """What was sent.

    Attributes:
        port: where it listens.
        gauges: the newest value of each gauge by name.
        counters: the newest sum of each counter by its name and its labels in braces, if it has any.
    """

    port: int
    gauges: dict[str, float] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, str]:
        """The variables that let an Airflow send its metrics here."""
        return {
            "AIRFLOW__METRICS__OTEL_ON": "True",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.port}",
            "NO_PROXY": "127.0.0.1",
        }

    def keep(self, request: ExportMetricsServiceRequest) -> None:
        """Keep the gauges and counters of a request."""
        scopes = (scope for resource in request.resource_metrics for scope in resource.scope_metrics)
        for metric in (metric for scope in scopes for metric in scope.metrics):
            for point in metric.gauge.data_points:
                self.gauges[metric.name] = _value(point)
            for point in metric.sum.data_points:
                labels = ",".join(sorted(f"{one.key}={one.value.string_value}" for one in point.attributes))
                self.counters[f"{metric.name}{{{labels}}}" if labels else metric.name] = _value(point)


def _value(point: NumberDataPoint) -> float:
    return point.as_double if point.HasField("as_double") else float(point.as_int)


@contextmanager
def receiving() -> Iterator[OtlpReceiver]:
    """Receive metrics during the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            body = decompress(body) if self.headers["Content-Encoding"] == "gzip" else body
            status = 200 if self.path == _PATH else 404
            if status == 200:
                found.keep(ExportMetricsServiceRequest.FromString(body))
            self.send_response(status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(ExportMetricsServiceResponse().SerializeToString())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = OtlpReceiver(server.server_port)
        listener = Thread(target=server.serve_forever)
        listener.start()
        try:
            yield found
        finally:
            server.shutdown()
            listener.join()
