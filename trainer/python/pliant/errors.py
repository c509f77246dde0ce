"""What can go wrong, by what the reader has to do about it."""


class PliantError(RuntimeError):
    """The learner cannot go on; trying again may work."""

    exit_code = 1


class InvalidProgram(PliantError):
    """The program, its data or its settings are wrong: trying again would not help."""

    exit_code = 2


class Diverged(InvalidProgram):
    """A loss or a gradient is not a number, or infinite."""


class TrainingFailed(PliantError):
    """The learner ended as failed. The log says why, and so does this message."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code
