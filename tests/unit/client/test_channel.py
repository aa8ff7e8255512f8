"""The connection of a task process to its worker host."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

from tradewind.client.channel import READ_SIZE, Channel
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import GetVariable, RunnerAnswer, Value, decode_request, encode

THREADS = 8
QUESTIONS = 200


def test_several_threads_of_a_task_ask_at_the_same_time() -> None:
    """Each thread gets the answer to its own question, and none waits for one that another thread has read."""
    ours, theirs = socket.socketpair()
    channel = Channel(ours.fileno(), lambda name: b"")

    def host() -> None:
        reader = FrameReader()
        while data := theirs.recv(READ_SIZE):
            for document in reader.feed(data):
                question = decode_request(document)
                theirs.sendall(frame(encode(Value(question.op, True, question.key))))

    serving = threading.Thread(target=host)
    serving.start()
    try:
        with ThreadPoolExecutor(THREADS) as threads:
            found: list[RunnerAnswer] = list(
                threads.map(lambda n: channel.ask(GetVariable(0, f"v{n}")), range(QUESTIONS), timeout=60)
            )
    finally:
        ours.close()
        serving.join(60)
        theirs.close()
    assert [one.value for one in found if isinstance(one, Value)] == [f"v{n}" for n in range(QUESTIONS)]
