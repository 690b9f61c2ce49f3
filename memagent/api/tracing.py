"""OpenTelemetry, where it is configured: spans of requests and of turns go to the collector that the environment names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memagent.errors import ConfigUnusable

if TYPE_CHECKING:
    from memagent.config.environment import Environment


def install(options: Environment) -> None:
    """Send spans to `OTEL_EXPORTER_OTLP_ENDPOINT`; without it nothing is loaded. Raises `ConfigUnusable` without the SDK."""
    if options.otel_endpoint is None:
        return
    try:
        from opentelemetry import trace  # noqa: PLC0415  optional
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError:
        raise ConfigUnusable(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, and OpenTelemetry is not installed: "
            "`pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http`, or unset it"
        ) from None
    provider = TracerProvider(resource=Resource.create({"service.name": "memagent"}))
    endpoint = f"{options.otel_endpoint.rstrip('/')}/v1/traces"
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    trace.set_tracer_provider(provider)
