"""kubectl pliant ui: the operator's page in a browser, by a forwarded port."""

from __future__ import annotations

import time

from .operator_pod import PAGE_PORT, fetch, forwarded, leader
from .world import World


def run(world: World, namespace: str, browser: bool) -> None:
    import webbrowser  # here, because other commands start faster without it

    pod = leader(world.kubectl, namespace)
    with forwarded(world.kubectl, namespace, pod, PAGE_PORT) as port:
        fetch(port, "/")  # an operator without the page is named before a browser opens
        address = f"http://127.0.0.1:{port}/"
        world.print([address])
        if browser and not webbrowser.open(address):
            world.note("no browser could be opened: open the address yourself")
        world.note("Ctrl-C ends it")
        while True:
            time.sleep(3600)
