"""Completion: the words that may come next, and that a shell finds them."""

import os
import shutil
import subprocess
import unittest

from kubectl_pliant.arguments import parser
from kubectl_pliant.completion import candidates
from play import HERE, JOBS, PROGRAM, ProgramTest


class CandidatesTest(unittest.TestCase):
    def test_candidates_continue_the_words_before_the_cursor(self) -> None:
        for words, want in (
            ("l", ["list", "logs"]),
            ("list --so", ["--sort"]),
            ("list --sort p", ["priority", "progress"]),
            ("list -n ", []),
            ("list ", []),
            ("explain ", ["digits", "paper"]),
            ("explain d", ["digits"]),
            ("explain -n team-a -o json d", ["digits"]),
            ("explain --deep d", ["digits"]),
            ("explain digits ", []),
            ("priority digits ", []),
            ("completion ", ["bash", "zsh"]),
            ("absent ", []),
        ):
            with self.subTest(words=words):
                self.assertEqual(candidates(parser(), words.split(" "), lambda: ["digits", "paper"]), want)
        self.assertIn("list", candidates(parser(), [], list))


class ShellTest(ProgramTest):
    def test_jobs_of_other_tenants_cannot_expand_in_the_shell(self) -> None:
        items = [{"metadata": {"name": name}} for name in ("good", "$(id)", "a b", "\x1b", "")]
        self.cluster.write(f"{JOBS}.json", {"items": [*items, {"metadata": {"name": 5}}, None]})
        ended = self.cluster.run(["__complete", "explain", ""])
        self.assertEqual(ended.stdout, "good\n")

    def test_a_cluster_that_does_not_answer(self) -> None:
        self.cluster.fault("get", stderr="Unable to connect to the server: EOF", code=1)
        ended = self.cluster.run(["__complete", "explain", ""])
        self.assertEqual((ended.code, ended.stdout, ended.stderr), (0, "", ""))

    def test_bash_completes(self) -> None:
        bin_folder = self.cluster.folder / "bin"
        bin_folder.mkdir()
        (bin_folder / "kubectl-pliant").symlink_to(PROGRAM)
        script = self.run_it("completion bash").stdout + (
            "\nCOMP_WORDS=(kubectl-pliant explain d); COMP_CWORD=2; _kubectl_pliant; echo ${COMPREPLY[@]}\n"
            "COMP_WORDS=(kubectl-pliant qu); COMP_CWORD=1; _kubectl_pliant; echo ${COMPREPLY[@]}\n"
        )
        path = f"{bin_folder}:{HERE / 'fake'}:{os.environ['PATH']}"
        bash = shutil.which("bash")
        assert bash is not None
        said = subprocess.run(
            [bash, "--norc", "-c", script], env=self.cluster.environment({"PATH": path}), check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        self.assertEqual((said.stdout, said.stderr), ("digits\nqueues\n", ""))


if __name__ == "__main__":
    unittest.main()
