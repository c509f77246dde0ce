"""kubectl pliant ui: the operator's page in a browser, by a forwarded port, or saved in a file."""

from __future__ import annotations

import time

from .errors import CommandError, NotFoundError
from .operator_pod import PAGE_PORT, fetch, forwarded, leader
from .text import harmless
from .times import span
from .world import World

DEFAULT_SECONDS = 3600  # that a saved page goes back


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


def save(world: World, namespace: str, file: str, seconds: int) -> None:
    """Writes the page with the record of the last `seconds` to the file."""
    begin = int((world.now() - seconds) * 1000)
    pod = leader(world.kubectl, namespace)
    with forwarded(world.kubectl, namespace, pod, PAGE_PORT) as port:
        try:
            page = fetch(port, f"/saved.html?from={begin}")
        except NotFoundError:
            raise NotFoundError("this operator has no page that can be saved: update it, or turn its page on") from None
    try:
        with open(file, "wb") as opened:
            opened.write(page)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise CommandError(f"--save: {harmless(file, 200)} cannot be written: {why}; name another file") from None
    world.note(f"{harmless(file, 200)} has the last {span(seconds)} of pod {pod}'s record")
