"""A learner and its process: reports an uncaught exception to the job."""

import atexit
import contextlib
import sys
import traceback
from collections.abc import Callable, Iterator
from types import TracebackType

from ._learner import Learner
from ._output import KeptStreams
from ._say import say
from .errors import PliantError


def last_line(error: BaseException) -> str:
    """The last line of the error's traceback, with file and line where it was raised."""
    line = traceback.format_exception_only(error)[-1].strip()
    frames = traceback.extract_tb(error.__traceback__)
    return f"{line} ({frames[-1].filename}:{frames[-1].lineno})" if frames else line


def _story(error: BaseException) -> str:
    """The error's traceback, preceded by the callers of the function that caught it. The error
    continues to them, so a complete traceback includes them."""
    trace = error.__traceback__
    callers = traceback.format_stack(trace.tb_frame.f_back) if trace is not None else []
    return "".join([*callers, *traceback.format_exception(error)])


class Guard:
    """Until it is closed, an exception that ends the program also fails the learner, with the last
    line of its traceback as the job's message. A program that just ends closes the learner.

    There is one at a time: a new one closes the one before, which a notebook may have left open.
    """

    _present: "Guard | None" = None

    def __init__(self) -> None:
        if Guard._present is not None:
            Guard._present.close()
        _install_hook()
        self._at_close: list[Callable[[], None]] = []
        self._learner: Learner | None = None
        self._streams: KeptStreams | None = None
        # Returns what the program can do about an error of its own; "": nothing is known. Called
        # while the training is open.
        self.exit_code: int | None = None  # of the process, after `fail` explained an error
        self.explain: Callable[[BaseException], str] = lambda error: ""

    def watch(self, learner: Learner) -> None:
        self._learner = learner
        if not learner.job().alone:
            self._streams = KeptStreams(learner)
        Guard._present = self
        atexit.register(self.close)

    @contextlib.contextmanager
    def beginning(self) -> Iterator[None]:
        """Reports an error before the first step to the job, too, if there is one."""
        try:
            yield
        except PliantError as error:
            if self._learner is None:
                with contextlib.suppress(PliantError):  # then the library has reported to the job
                    self.watch(Learner(name="program", framework="unknown"))
            self.fail(error)
            raise

    def fail(self, error: BaseException, *, shown: bool = False) -> None:
        """Ends the learner as failed. Waits until the job has been notified. `shown`: the traceback
        is printed already. Otherwise it is copied here, as output printed later is not copied."""
        if self._learner is None:
            return
        if self._streams is not None and not shown:
            self._learner.keep_output(_story(error))
        if isinstance(error, PliantError):
            self._learner.fail(str(error), wrong_input=error.exit_code == 2)
        else:
            remedy = self.explain(error)
            if remedy:
                say(remedy)
            message = ": ".join(part for part in (last_line(error), remedy) if part)
            self._learner.fail(message, wrong_input=bool(remedy))
            self.exit_code = 2 if remedy else None
        self.close()

    def at_close(self, let_go: Callable[[], None]) -> None:
        """Adds a function that `close` calls to release something of the program."""
        self._at_close.append(let_go)

    def close(self) -> None:
        if self._learner is None:
            return
        learner, self._learner = self._learner, None
        streams, self._streams = self._streams, None
        if Guard._present is self:
            Guard._present = None
        atexit.unregister(self.close)
        with contextlib.ExitStack() as last:  # runs in reverse order, all of it, even if one raises
            last.callback(learner.close)
            if streams is not None:
                last.callback(streams.close)
            for let_go in self._at_close:
                last.callback(let_go)

    @classmethod
    def present(cls) -> "Guard | None":
        return cls._present


_hook_before = None


def _install_hook() -> None:
    global _hook_before
    if sys.excepthook is not _on_uncaught:
        _hook_before = sys.excepthook
        sys.excepthook = _on_uncaught


def _on_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if _hook_before is not None:
        _hook_before(kind, error, trace)
    sys.stderr.flush()
    guard = Guard.present()
    if guard is not None:
        guard.fail(error, shown=True)
    code = error.exit_code if isinstance(error, PliantError) else guard and guard.exit_code
    if code is not None and not _is_interactive():
        raise SystemExit(code)


def _is_interactive() -> bool:
    """At a prompt an error must not end the process."""
    return hasattr(sys, "ps1") or bool(sys.flags.interactive)
