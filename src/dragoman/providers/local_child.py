"""The child of provider `local`: loads the weights, serves them on loopback until input ends."""

import os
import sys

import msgspec

from .local import Order, Report


def main() -> int:
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    out = os.dup(1)
    os.dup2(2, 1)  # the runtime prints to stdout, which is our wire
    report = Report()
    server = None
    try:
        server = _serve(order)
        report.address = server.listening_address
    except Exception as error:  # whatever the runtime raises goes to the parent
        report.error = str(error) or type(error).__name__
    os.write(out, msgspec.json.encode(report) + b"\n")
    os.close(out)
    if server is None:
        return 1
    while sys.stdin.buffer.read(4096):
        continue
    # The runtime's own shutdown may wait for requests that nobody reads any more.
    os._exit(0)


def _serve(order: Order):  # type: ignore[no-untyped-def]
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = order.path
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [order.key]
    params.n_ctx = order.context
    params.n_parallel = 1
    params.cpuparams.n_threads = order.threads
    params.cpuparams_batch.n_threads = order.threads
    params.use_jinja = True
    params.ui = False
    return xllamacpp.Server(params)


if __name__ == "__main__":
    sys.exit(main())
