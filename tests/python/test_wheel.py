"""The wheel that users add to an image of their own (docs/python.md)."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What the machine's Python names as its compiler is one of its own.
_COMPILERS = {"CC": "/usr/bin/cc", "CXX": "/usr/bin/c++"}
_MODULES = {"callbacks.py", "fabric_model.py", "pyedt/fabric_model.py", "pliant/__init__.py", "pliant/py.typed"}  # fmt: skip


class WheelTest(unittest.TestCase):
    def run_it(self, *command, **environment):
        ended = subprocess.run(
            [sys.executable, *command], env={**os.environ, **environment}, text=True, timeout=1800,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        self.assertEqual(ended.returncode, 0, ended.stdout)
        return ended.stdout

    def test_it_trains_where_nothing_else_of_pliant_is(self):
        # The same place each time: what ccache keeps is found again.
        build = pathlib.Path(os.environ["PLIANT_BIN"]).parent / "wheel"
        with tempfile.TemporaryDirectory() as folder:
            made, site = pathlib.Path(folder) / "made", pathlib.Path(folder) / "site"
            self.run_it(
                "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-C", f"build-dir={build}",
                "--wheel-dir", str(made), str(ROOT / "trainer" / "python"), **_COMPILERS,
            )  # fmt: skip
            (wheel,) = made.iterdir()
            self.assertRegex(wheel.name, r"^pliant-[0-9.]+-py3-none-linux_\w+\.whl$")
            with zipfile.ZipFile(wheel) as archive:
                held = set(archive.namelist())
            self.assertLessEqual(_MODULES | {"pliant/lib/libpliant.so"}, held)
            others = ("pliant/", "pyedt/", "callbacks.py", "fabric_model.py")
            strange = {name for name in held if not name.startswith(others)}
            self.assertEqual({name for name in strange if ".dist-info/" not in name}, set())

            install = ["-m", "pip", "install", "--no-index", "--no-deps", "--target", str(site)]
            self.run_it(*install, str(wheel))
            said = self.run_it(
                "-m", "pliant", "doctor", PYTHONPATH=str(site), PLIANT_LIBRARY="", PLIANT_BIN=""
            )
            self.assertIn(str(site), said)  # this package's library, no other


if __name__ == "__main__":
    unittest.main()
