"""Connections of the web server's threads, which come and go."""

from __future__ import annotations

import gc
import threading

from tests.unit.api.conftest import World


def test_connections_of_ended_threads_are_dropped(world: World) -> None:
    """The server ends a thread after ten idle seconds, and starts new ones later."""
    services = world.app.state.services
    for _ in range(50):
        thread = threading.Thread(target=lambda: (services.reader(), services.ping()))
        thread.start()
        thread.join()
    gc.collect()
    assert len(services._opened) <= 3
