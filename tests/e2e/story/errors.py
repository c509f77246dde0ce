"""The one error of the story: a sentence that says what is off."""


class StoryError(Exception):
    """What should have happened, and what happened instead."""
