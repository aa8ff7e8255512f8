"""Connections of the web server's threads, which come and go."""

from __future__ import annotations

import gc
import threading

from tests.unit.api.conftest import World


def test_connections_of_threads_that_ended_are_not_kept(world: World) -> None:
    """A thread ends after ten seconds without a request; for each next burst there is another one."""
    services = world.app.state.services
    for _ in range(50):
        thread = threading.Thread(target=lambda: (services.reader(), services.ping()))
        thread.start()
        thread.join()
    gc.collect()
    assert len(services._opened) <= 3
