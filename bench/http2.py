"""What the grammar of HTTP/2 costs in Python beside the one of HTTP/1.1, for one streamed delta.

    python bench/http2.py [--deltas N] [--rounds N]

Needs `pip install h2 httptools`. No sockets and no TLS: both get the same events, one in a frame or
a chunk, as they would come out of a read. Decision 0106 was taken by these figures.
"""

import argparse
import time
from collections.abc import Callable, Sequence

DELTA = (
    b'data: {"type":"content_block_delta","index":0,'
    b'"delta":{"type":"text_delta","text":" word"}}\n\n'
)
ROOM = 2**30  # bytes that may come without a word from us: the receiver's best case


def frames(count: int) -> tuple[Callable[[bytes], int], Sequence[bytes]]:
    """A client in the middle of an answer, and the reads that are to come."""
    from h2.config import H2Configuration
    from h2.connection import H2Connection
    from h2.events import DataReceived

    server, client = H2Connection(H2Configuration(client_side=False)), H2Connection()
    client.initiate_connection()
    server.initiate_connection()
    server.receive_data(client.data_to_send())
    client.receive_data(server.data_to_send())
    ask = {":method": "POST", ":path": "/", ":scheme": "https", ":authority": "x"}
    client.send_headers(1, [*ask.items()], end_stream=True)
    client.increment_flow_control_window(ROOM)
    client.increment_flow_control_window(ROOM, 1)
    server.receive_data(client.data_to_send())
    server.send_headers(1, [(":status", "200"), ("content-type", "text/event-stream")])
    client.receive_data(server.data_to_send())
    reads = []
    for _ in range(count):
        server.send_data(1, DELTA)
        reads.append(server.data_to_send())

    def take(read: bytes) -> int:
        size = 0
        for event in client.receive_data(read):
            if isinstance(event, DataReceived):
                size += len(event.data)
                client.acknowledge_received_data(event.flow_controlled_length, 1)
        client.data_to_send()
        return size

    return take, reads


def chunks(count: int) -> tuple[Callable[[bytes], int], Sequence[bytes]]:
    from httptools import HttpResponseParser

    class Answer:
        size = 0

        def on_body(self, body: bytes) -> None:
            self.size += len(body)

    answer = Answer()
    parser = HttpResponseParser(answer)
    parser.feed_data(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")

    def take(read: bytes) -> int:
        before = answer.size
        parser.feed_data(read)
        return answer.size - before

    return take, [b"%x\r\n%s\r\n" % (len(DELTA), DELTA)] * count


def cost(
    make: Callable[[int], tuple[Callable[[bytes], int], Sequence[bytes]]], count: int
) -> float:
    """Microseconds of CPU for one delta."""
    take, reads = make(count)
    began = time.process_time()
    size = sum(map(take, reads))
    spent = time.process_time() - began
    if size != count * len(DELTA):
        raise RuntimeError(f"{size} bytes of {count * len(DELTA)} came out")
    return spent / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--deltas", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    for name, make in (("HTTP/2, h2", frames), ("HTTP/1.1, httptools", chunks)):
        print(f"{name:20} {min(cost(make, args.deltas) for _ in range(args.rounds)):6.2f} µs")


if __name__ == "__main__":
    main()
