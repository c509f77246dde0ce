"""Requests to the training that runs in this process."""

from ._loop import Elastic
from .errors import InvalidProgram


def request_learners(learners: int | None) -> None:
    """Calls Elastic.request_learners of the training that runs in this process. Raises
    InvalidProgram if none runs."""
    if Elastic.present is None:
        raise InvalidProgram("request_learners: no training runs in this process")
    Elastic.present.request_learners(learners)
