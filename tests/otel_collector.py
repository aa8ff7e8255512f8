"""A stand-in for a collector of OpenTelemetry: an HTTP server that keeps the metrics it receives."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Collector(ThreadingHTTPServer):
    """Keeps the exports that it receives."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        super().__init__(("127.0.0.1", 0), _Exports)

    def metrics(self) -> dict[str, Any]:
        """Name → metric, of all exports."""
        return {
            metric.name: metric
            for request in self.requests
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


class _Exports(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

        body = self.rfile.read(int(self.headers["Content-Length"]))
        body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        self.server.requests.append(ExportMetricsServiceRequest.FromString(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_arguments: object) -> None: ...


@contextmanager
def started_collector() -> Iterator[Collector]:
    """A collector on a free port. The test is skipped if the packages of OpenTelemetry are not installed."""
    pytest.importorskip("opentelemetry.sdk.metrics", reason="opentelemetry-sdk is not installed (the extra otel)")
    pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.http.metric_exporter",
        reason="opentelemetry-exporter-otlp-proto-http is not installed (the extra otel)",
    )
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
