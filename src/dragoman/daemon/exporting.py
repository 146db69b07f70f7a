"""The way of spans and figures to a collector, without traces in the processes that we start."""

import contextlib
import os
from collections.abc import Iterator

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider

from dragoman import __version__


def providers(endpoint: str) -> tuple[TracerProvider, MeterProvider]:
    """Who sends spans and figures to a collector, or where the environment says."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    base = endpoint.rstrip("/")
    spans = OTLPSpanExporter(endpoint=f"{base}/v1/traces") if base else OTLPSpanExporter()
    figures = OTLPMetricExporter(endpoint=f"{base}/v1/metrics") if base else OTLPMetricExporter()
    own = {"service.name": "dragoman", "service.version": __version__}
    given = OTELResourceDetector().detect().attributes  # OTEL_SERVICE_NAME and the like go first
    resource = Resource.create({**own, **given})
    with in_this_process_alone(), contextlib.ExitStack() as undo:
        traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        undo.callback(traces.shutdown)  # its thread, when the rest cannot be made
        traces.add_span_processor(BatchSpanProcessor(spans))
        readers = [PeriodicExportingMetricReader(figures)]
        made = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
        undo.pop_all()
        return traces, made


@contextlib.contextmanager
def in_this_process_alone() -> Iterator[None]:
    """Let nothing that is made here ask to be begun anew in forked children.

    The SDK starts its threads again in each of them, and looks for its resources in others. Ours
    are about to become commands, and the kernel gives no user namespace, so no sandbox, to a
    process that has a second thread.
    """
    ask = getattr(os, "register_at_fork", None)
    if ask is None:  # nothing forks here
        yield
        return
    os.register_at_fork = lambda **_: None
    try:
        yield
    finally:
        os.register_at_fork = ask
