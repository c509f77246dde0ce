"""The wheel that users install: built without a network, installed where nothing else of Pliant is, and found as kubectl
finds its plugins."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

from play import HERE, NOW, ROOT


@unittest.skipUnless(importlib.util.find_spec("scikit_build_core"), "the build image has scikit-build-core")
class WheelTest(unittest.TestCase):
    def run_it(self, *command: str, **environment: str) -> str:
        ended = subprocess.run(
            command, env={**os.environ, **environment}, text=True, timeout=120, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.assertEqual(ended.returncode, 0, ended.stdout)
        return ended.stdout

    def test_it_works_where_nothing_else_of_pliant_is(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            made, site = Path(folder) / "made", Path(folder) / "site"
            build = ["wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", str(made)]
            self.run_it(sys.executable, "-m", "pip", *build, str(ROOT / "cli"))
            (wheel,) = made.iterdir()
            self.assertRegex(wheel.name, r"^kubectl_pliant-[0-9.]+-py3-none-any\.whl$")
            with zipfile.ZipFile(wheel) as archive:
                held = set(archive.namelist())
            self.assertTrue(any(name.endswith("/LICENSE") for name in held), held)
            modules = {f"kubectl_pliant/{file.name}" for file in (ROOT / "cli" / "kubectl_pliant").glob("*.py")}
            self.assertEqual({name for name in held if name.endswith(".py")}, modules)

            install = ["install", "--no-index", "--no-deps", "--target", str(site)]
            self.run_it(sys.executable, "-m", "pip", *install, str(wheel))
            (Path(folder) / "state").mkdir()
            everywhere = {
                "PATH": f"{site / 'bin'}:{HERE / 'fake'}:{os.environ['PATH']}",
                "PYTHONPATH": str(site),
                "PYTHONDONTWRITEBYTECODE": "1",
                "FAKE_KUBECTL_STATE": str(Path(folder) / "state"),
                "PLIANT_CLI_TEST_NOW": NOW,
            }
            # The fake, like kubectl, runs kubectl-WORD of PATH for a word that it does not know.
            said = self.run_it("kubectl", "pliant", "--help", **everywhere)
            self.assertIn("usage: kubectl pliant", said)
            said = self.run_it("kubectl_complete-pliant", "hist", **everywhere)
            self.assertEqual(said, "history\n:4\n")


if __name__ == "__main__":
    unittest.main()
