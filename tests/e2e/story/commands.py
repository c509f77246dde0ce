"""kubectl pliant on a cluster with two trainings: what its commands say, as a user runs them."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence

from .checks import Check
from .errors import StoryError
from .kubectl import Kubectl

_ENTER, _LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"  # the other screen of a terminal
_SECONDS = 30.0
_SECONDS_TO_END = 5.0
_INTERRUPTED = 130


def while_both_train(kubectl: Kubectl, first: str, second: str) -> Check:
    """Both have equal priority, and a half of the GPUs."""
    fits = {
        ("list",): rf"{first} .* Running .*\n(.*\n)*",
        ("explain", first): rf"{first} of namespace .* is Running",
        ("explain", first, "--deep"): rf"job .*/{first}: 4 learners",
        ("history", first): r"Resizing +8 -> 4 +4 of 8 GPUs",
        ("cost",): rf"{first} +\d+\.\d\d\n",
        ("top", "--once"): rf"{first} +default +4 ",
        ("logs", second, "--tail", "1"): r"learner-0: ",
        ("whatif", "--set", f"job.{kubectl.namespace}/{first}.priority=10000"): rf"{first} .*5000 -> 10000 .* 4 -> 5 ",
    }
    problems = [problem for command, pattern in fits.items() for problem in _problems(kubectl, command, pattern)]
    return Check("the commands of kubectl pliant say what is", (*problems, *_top(kubectl, first), *_ui(kubectl)))


def after_the_end(kubectl: Kubectl, name: str) -> Check:
    """The learners' pods are gone."""
    fits = {
        ("list",): rf"{name} .* Succeeded +100%",
        ("history", name): r"Completed",
        ("logs", name, "--kept"): r"learner-\d+: .*epoch done",  # of the first rank, which any learner may have
    }
    problems = [problem for command, pattern in fits.items() for problem in _problems(kubectl, command, pattern)]
    pods = kubectl.json("get", "pods", "--selector=app.kubernetes.io/managed-by=kubectl-pliant")["items"]
    return Check("kubectl pliant tells the end", (*problems, *pods_left(pods)))


def pods_left(pods: Sequence[Mapping]) -> list[str]:
    """Those that the program has not deleted. It does not wait until they are gone. Pure."""
    kept = [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    return [f"pods are left: {', '.join(kept)}"] if kept else []


def _problems(kubectl: Kubectl, command: Sequence[str], pattern: str) -> list[str]:
    try:
        said = kubectl.pliant(*command)
    except StoryError as error:
        return [str(error)]
    return said_problems(command, said, pattern)


def said_problems(command: Sequence[str], said: str, pattern: str) -> list[str]:
    """Pure."""
    name = f"kubectl pliant {' '.join(command)}"
    found = [] if re.search(pattern, said) else [f"{name} does not say {pattern}: {said.strip()[-300:]}"]
    return [*found, *([f"{name} writes control characters into a pipe"] if "\x1b" in said else [])]


def _top(kubectl: Kubectl, name: str) -> list[str]:
    """`top` in a terminal: it draws again and again until Ctrl-C."""
    program, line, environment = kubectl.pliant_program("top")
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            os.execve(program, line, environment)  # at once: the watcher's thread may have held locks
        finally:
            os._exit(127)
    ended, status = 0, 0
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
        drawn = _read(terminal, lambda text: text.count(b"\x1b[H") >= 2)
        with contextlib.suppress(OSError):  # it may have ended by itself
            os.write(terminal, b"\x03")
        drawn += _read(terminal, lambda text: False)
    finally:
        deadline = time.monotonic() + _SECONDS_TO_END
        while not ended and time.monotonic() < deadline:
            time.sleep(0.05)
            ended, status = os.waitpid(pid, os.WNOHANG)
        if not ended:
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
        os.close(terminal)
    return screen_problems(drawn, os.waitstatus_to_exitcode(status), name)


def screen_problems(drawn: bytes, code: int, name: str) -> list[str]:
    """Pure."""
    frames = drawn.split(b"\x1b[H")[1:]
    problems = [] if len(frames) >= 2 else [f"kubectl pliant top drew {len(frames)} times"]
    problems += [] if all(name.encode() in frame for frame in frames) else [f"kubectl pliant top does not show {name}"]
    if code != _INTERRUPTED:
        problems.append(f"Ctrl-C ends kubectl pliant top with {code}")
    if drawn.count(_ENTER) != 1 or not drawn.rstrip().endswith(_LEAVE):
        problems.append(f"kubectl pliant top does not restore the screen: {drawn[-60:]!r}")
    return problems


def _read(terminal: int, enough: Callable[[bytes], bool]) -> bytes:
    """What the program draws until it is enough, it ends, or the time is over."""
    found = b""
    deadline = time.monotonic() + _SECONDS
    while not enough(found) and (left := deadline - time.monotonic()) > 0:
        if not select.select([terminal], [], [], left)[0]:
            break
        try:
            block = os.read(terminal, 1 << 16)
        except OSError:  # the program has ended
            break
        if not block:
            break
        found += block
    return found


def _ui(kubectl: Kubectl) -> list[str]:
    """`ui`: its address answers until Ctrl-C."""
    _, line, environment = kubectl.pliant_program("ui", "--no-browser")
    process = subprocess.Popen(
        line, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        address = process.stdout.readline().strip()
        try:
            with urllib.request.urlopen(address, timeout=_SECONDS) as answer:
                page = answer.read().decode()
        except (OSError, ValueError) as error:
            return [f"kubectl pliant ui: {address or 'no address'}: {error}"]
        process.send_signal(signal.SIGINT)
        process.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        return ["Ctrl-C does not end kubectl pliant ui"]
    finally:
        process.kill()
        process.communicate()
    problems = [] if "<title>Pliant timeline</title>" in page else [f"kubectl pliant ui serves {page[:100]}"]
    if process.returncode != _INTERRUPTED:
        problems.append(f"Ctrl-C ends kubectl pliant ui with {process.returncode}")
    with contextlib.suppress(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=5)
        problems.append(f"{address} still answers after Ctrl-C")
    return problems
