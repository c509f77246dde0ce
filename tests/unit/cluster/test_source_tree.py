"""Commits by name, and their files, in a repository made by the test."""

import tempfile
import unittest
from pathlib import Path

from pliantdev import source_tree
from pliantdev.errors import DevError


class CommitTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root, self.cache = Path(scratch.name, "repository"), Path(scratch.name, "cache")
        self.root.mkdir()
        self.cache.mkdir()
        self.git("init", "--quiet")
        self.first = self.commit("one")
        self.second = self.commit("two")

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
        printed = source_tree.git(*identity, *arguments, root=self.root)
        self.assertIsNotNone(printed)
        return (printed or "").strip()

    def commit(self, text: str) -> str:
        (self.root / "folder").mkdir(exist_ok=True)
        (self.root / "folder" / "file").write_text(text)
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", text)
        return self.git("rev-parse", "HEAD")

    def test_a_name_is_a_commit_of_twelve_digits(self) -> None:
        for name in ("HEAD~1", self.first, self.first[:8]):
            with self.subTest(name):
                self.assertEqual(source_tree.resolve(name, self.root), self.first[:12])

    def test_a_name_of_no_commit_is_refused(self) -> None:
        for name in ("", "nothing", "--all", "-h", "HEAD:folder", f"{self.first}..{self.second}"):
            with self.subTest(name), self.assertRaisesRegex(DevError, "does not know the commit"):
                source_tree.resolve(name, self.root)

    def test_its_files_are_those_of_the_commit_also_the_second_time(self) -> None:
        for _ in range(2):
            folder = source_tree.at(self.first[:12], self.root, self.cache)
            self.assertEqual((folder / "folder" / "file").read_text(), "one")
        self.assertEqual([each.name for each in self.cache.iterdir()], ["commits"])

    def test_a_failed_archive_leaves_nothing(self) -> None:
        with self.assertRaisesRegex(DevError, "cannot archive"):
            source_tree.at("0" * 12, self.root, self.cache)
        self.assertEqual(list(self.cache.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
