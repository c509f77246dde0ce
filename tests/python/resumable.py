"""Trainings that are left and resumed in one test."""

import contextlib
import io
import pathlib
import tempfile
import unittest
from unittest import mock


class ResumableTest(unittest.TestCase):
    """Each step has a checkpoint below `scratch`; `told` is what the package says on stderr."""

    def setUp(self):
        self.scratch = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="pliant-test-")))
        self.told = io.StringIO()
        self.enterContext(contextlib.redirect_stderr(self.told))
        self.enterContext(mock.patch.dict("os.environ", {"PLIANT_CHECKPOINT_EVERY_STEPS": "1"}))
