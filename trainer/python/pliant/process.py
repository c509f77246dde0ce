"""A learner and the process around it: how an exception that nobody caught reaches the job."""

import atexit
import contextlib
import sys
import traceback
from collections.abc import Callable, Iterator
from types import TracebackType

from ._learner import Learner
from ._output import KeptStreams
from .errors import PliantError


def last_line(error: BaseException) -> str:
    """The last line of its traceback, with the place in the program that it came from."""
    line = traceback.format_exception_only(error)[-1].strip()
    frames = traceback.extract_tb(error.__traceback__)
    return f"{line} ({frames[-1].filename}:{frames[-1].lineno})" if frames else line


def _story(error: BaseException) -> str:
    """Its traceback, and above that who called the function that caught it: it goes on to them."""
    trace = error.__traceback__
    callers = traceback.format_stack(trace.tb_frame.f_back) if trace is not None else []
    return "".join([*callers, *traceback.format_exception(error)])


class Guard:
    """Until it is closed, an exception that ends the program also ends the learner, as failed, with
    the exception's last line as the job's message; and a program that just ends gives up what is
    left.

    One at a time: a new one closes the one before, which a notebook may have left behind.
    """

    _present: "Guard | None" = None

    def __init__(self) -> None:
        if Guard._present is not None:
            Guard._present.close()
        _install_hook()
        self._at_close: list[Callable[[], None]] = []
        self._learner: Learner | None = None
        self._streams: KeptStreams | None = None

    def watch(self, learner: Learner) -> None:
        self._learner = learner
        if not learner.job().alone:
            self._streams = KeptStreams(learner)
        Guard._present = self
        atexit.register(self.close)

    @contextlib.contextmanager
    def beginning(self) -> Iterator[None]:
        """What is wrong before the first step reaches the job, too, if there is one."""
        try:
            yield
        except PliantError as error:
            if self._learner is None:
                with contextlib.suppress(PliantError):  # which the job was told of, then
                    self.watch(Learner(name="program", framework="unknown"))
            self.fail(error)
            raise

    def fail(self, error: BaseException, *, shown: bool = False) -> None:
        """The learner ends as failed. Waits until the job has heard of it. `shown`: the traceback
        is printed already. Otherwise that is done, if at all, when nothing is kept any more."""
        if self._learner is None:
            return
        if self._streams is not None and not shown:
            self._learner.keep_output(_story(error))
        wrong_input = isinstance(error, PliantError) and error.exit_code == 2
        message = str(error) if isinstance(error, PliantError) else last_line(error)
        self._learner.fail(message, wrong_input=wrong_input)
        self.close()

    def at_close(self, let_go: Callable[[], None]) -> None:
        """What else holds something of the program until then."""
        self._at_close.append(let_go)

    def close(self) -> None:
        if self._learner is None:
            return
        learner, self._learner = self._learner, None
        streams, self._streams = self._streams, None
        if Guard._present is self:
            Guard._present = None
        atexit.unregister(self.close)
        with contextlib.ExitStack() as last:  # upwards, and all of it, whatever one of them raises
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
    if isinstance(error, PliantError) and not _is_interactive():
        raise SystemExit(error.exit_code)


def _is_interactive() -> bool:
    """At a prompt an error ends what was typed, and nothing else."""
    return hasattr(sys, "ps1") or bool(sys.flags.interactive)
