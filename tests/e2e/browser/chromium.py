"""A headless Chromium with one tab, its input, and what it complains about."""

import base64
import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .pipe import BrowserError, Pipe

_END_SECONDS = 10.0
# No requests of the browser's own, and no sandbox: it runs as root, and opens the operator's page alone.
_OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server",
    "--remote-debugging-pipe", "--hide-scrollbars", "--lang=en-US",
)  # fmt: skip
_DOMAINS = ("Page", "Runtime", "Log", "Network", "DOM", "Accessibility", "Audits")
# Key: code, Windows virtual key code, text.
_KEYS = {
    "Tab": ("Tab", 9, ""), "Enter": ("Enter", 13, "\r"), "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowRight": ("ArrowRight", 39, ""), "ArrowDown": ("ArrowDown", 40, ""), "Home": ("Home", 36, ""),
}  # fmt: skip


@dataclass
class Complaints:
    """Things that a page without faults does not do."""

    errors: list[str] = field(default_factory=list)  # of the console and of scripts
    violations: list[str] = field(default_factory=list)  # of the content security policy
    requests: list[str] = field(default_factory=list)  # all addresses

    def take(self, event: Mapping[str, Any]) -> None:
        method, parameters = event["method"], event.get("params", {})
        if method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            said = " ".join(str(each.get("value", each.get("description", ""))) for each in parameters["args"])
            self.errors.append(f"{parameters['type']}: {said}")
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.errors.append(parameters["entry"]["text"])
        elif method == "Audits.issueAdded" and parameters["issue"]["code"] == "ContentSecurityPolicyIssue":
            details = parameters["issue"]["details"]["contentSecurityPolicyIssueDetails"]
            self.violations.append(f"{details['violatedDirective']}: {details.get('blockedURL', 'inline')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def elsewhere(self, origin: str) -> list[str]:
        """The requests to other places."""
        return [url for url in self.requests if not url.startswith((f"{origin}/", "data:"))]


class Tab:
    def __init__(self, pipe: Pipe, session: str, complaints: Complaints) -> None:
        self._pipe = pipe
        self._session = session
        self.complaints = complaints

    def command(self, method: str, **parameters: object) -> Mapping[str, Any]:
        return self._pipe.command(method, parameters, session=self._session)

    def listen(self, seconds: float) -> None:
        self._pipe.listen(seconds)

    def evaluate(self, script: str) -> Any:
        """The value of an expression, as JSON has it."""
        answer = self.command("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(f"{details.get('exception', {}).get('description', details['text'])}: {script[:200]}")
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        code, number, text = _KEYS[key]
        for kind in ("keyDown", "keyUp"):
            parameters: dict[str, object] = {"type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number}
            if text and kind == "keyDown":
                parameters["text"] = text
            self.command("Input.dispatchKeyEvent", **parameters)

    def prefer(self, scheme: str) -> None:
        """`scheme`: light or dark, as the system would prefer it."""
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address: str) -> None:
        answer = self.command("Page.navigate", url=address)
        if "errorText" in answer:
            raise BrowserError(f"{address}: {answer['errorText']}")

    def accessible(self) -> Sequence[Mapping[str, Any]]:
        nodes: Sequence[Mapping[str, Any]] = self.command("Accessibility.getFullAXTree")["nodes"]
        return nodes

    def screenshot(self, file: Path) -> None:
        answer = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(answer["data"]))


@contextlib.contextmanager
def tab(program: str, width: int = 1280, height: int = 1400) -> Iterator[Tab]:
    """Starts the browser, and ends it with all its processes."""
    to_read, from_us = os.pipe()
    from_browser, to_write = os.pipe()
    complaints = Complaints()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # Chromium reads commands from descriptor 3 and writes to descriptor 4.
        command = ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "bash", program, *_OPTIONS]
        process = subprocess.Popen(
            [*command, f"--user-data-dir={profile}", "about:blank"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, pass_fds=(to_read, to_write),
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        try:
            pipe = Pipe(from_browser, from_us, complaints.take)
            target = pipe.command("Target.createTarget", {"url": "about:blank"}, seconds=60.0)["targetId"]
            session = pipe.command("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
            made = Tab(pipe, session, complaints)
            for domain in _DOMAINS:
                made.command(f"{domain}.enable")
            made.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
            yield made
            with contextlib.suppress(BrowserError):
                pipe.command("Browser.close", {}, seconds=_END_SECONDS)
        finally:
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(from_us)
            os.close(from_browser)
