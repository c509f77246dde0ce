"""The operator's page of a story: open while it runs, and kept as a file and as a picture."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .errors import StoryError
from .kubectl import Kubectl

_REPO = Path(__file__).resolve().parents[3]
_DOCUMENT = re.compile(r'<script type="application/json" id="saved">(.*?)</script>', re.DOTALL)
_SECONDS_TO_END = 10.0


@contextmanager
def opened(kubectl: Kubectl) -> Iterator[str]:
    """The address of the page, for as long as it is needed. A browser opens it if there is a display."""
    has_display = sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        process = kubectl.start_pliant("ui", *([] if has_display else ["--no-browser"]), stderr=said)
        try:
            assert process.stdout
            address = process.stdout.readline().strip()
            if not address:
                process.wait()
                said.seek(0)
                raise StoryError(f"kubectl pliant ui: {said.read(2000).strip()}")
            yield address
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)  # so that it ends the kubectl that forwards the port
    try:
        process.wait(_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdout
    process.stdout.close()


def save(kubectl: Kubectl, file: Path, begin: float) -> None:
    """Writes the page with everything since `begin`."""
    seconds = math.ceil(time.time() - begin) + 1
    kubectl.pliant("ui", "--save", str(file), "--since", f"{seconds}s")


def saved_document(page: str) -> dict:
    """The timeline document of a saved page."""
    found = _DOCUMENT.search(page)
    if not found:
        raise StoryError("the saved page has no record")
    return json.loads(found[1])[0]["document"]


def part_of(document: Mapping, begin: float, end: float) -> dict:
    """The part of a timeline document between two times, which is shown in seconds since its beginning. A reader counts
    changes before `begin` as part of the state at `begin`."""
    first, last = round(begin * 1000), round(end * 1000)
    changes = [change for change in document["changes"] if change["at"] <= last]
    return {**document, "from": first, "begin": first, "origin": first, "now": last, "changes": changes}


def picture(document: Mapping) -> str:
    """The document drawn as SVG by the scripts of the page, which Node.js of the build image runs."""
    sys.path.append(str(_REPO / "tests" / "cluster"))
    from pliantdev import build_image
    from pliantdev.errors import DevError

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "document.json").write_text(json.dumps(document))
        inside = ["node", "tests/e2e/picture.js", "/document/document.json"]
        try:
            command = build_image.command(inside, mounts={Path(folder): "/document"})
        except DevError as error:
            raise StoryError(f"the picture needs the build image: {error}") from None
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise StoryError(f"the picture cannot be drawn: {ran.stderr.strip()}")
    return ran.stdout
