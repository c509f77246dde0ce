"""Errors, by what the reader has to do about them."""


class PliantError(RuntimeError):
    """The learner cannot continue; a retry may succeed."""

    exit_code = 1


class InvalidProgram(PliantError, ValueError):
    """The program, its data or its settings are wrong: a retry would fail, too."""

    exit_code = 2


class Diverged(InvalidProgram):
    """A loss or a gradient is NaN or infinite."""


class TrainingFailed(PliantError):
    """The learner failed. The message and the log give the reason."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code
