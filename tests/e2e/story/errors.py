"""The story's only error type."""


class StoryError(Exception):
    """The message says what should have happened, and what happened instead."""
