"""The wheel that users install in their own image (docs/python.md)."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Set, because the machine's Python would use a compiler of its own.
_COMPILERS = {"CC": "/usr/bin/cc", "CXX": "/usr/bin/c++"}
_BESIDE = ("callbacks.py", "emetrics.py", "fabric_model.py", "pth_parameter_mgr.py")
_MODULES = {*_BESIDE, "pyedt/fabric_model.py", "pliant/__init__.py", "pliant/_parameters.py", "pliant/py.typed"}  # fmt: skip


class WheelTest(unittest.TestCase):
    def run_it(self, *command, **environment):
        ended = subprocess.run(
            [sys.executable, *command], env={**os.environ, **environment}, text=True, timeout=1800,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        self.assertEqual(ended.returncode, 0, ended.stdout)
        return ended.stdout

    def assert_named_after_what_it_needs(self, wheel, folder):
        """pip refuses it where the C library is older, and accepts it elsewhere."""
        level, machine = re.search(r"manylinux_2_(\d+)_(\w+)\.whl$", wheel.name).groups()
        needed = set()
        with zipfile.ZipFile(wheel) as archive:
            (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/WHEEL"))
            self.assertIn(f"Tag: py3-none-manylinux_2_{level}_{machine}\n", archive.read(metadata).decode())
            archive.extractall(folder / "unpacked")
        for library in (folder / "unpacked").rglob("*.so*"):
            said = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=True).stdout
            needed |= {int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", said)}
        self.assertEqual(max(needed), int(level))
        for there, taken in ((int(level), True), (int(level) + 3, True), (int(level) - 1, False)):
            # pip normally uses the version of the machine's C library; here the platform tags name it.
            tags = [f"--platform=manylinux_2_{minor}_{machine}" for minor in range(17, there + 1)]
            ended = subprocess.run(
                [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--only-binary=:all:", *tags,
                 "--target", str(folder / f"glibc-2.{there}"), str(wheel)],
                capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            self.assertEqual(ended.returncode == 0, taken, ended.stderr)
            if not taken:
                self.assertIn("is not a supported wheel on this platform", ended.stderr)

    def test_it_trains_where_nothing_else_of_pliant_is(self):
        # The same folder each time, so that ccache finds its entries again.
        build = pathlib.Path(os.environ["PLIANT_BIN"]).parent / "wheel"
        with tempfile.TemporaryDirectory() as folder:
            made, site = pathlib.Path(folder) / "made", pathlib.Path(folder) / "site"
            self.run_it(
                "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-C", f"build-dir={build}",
                "--wheel-dir", str(made), str(ROOT / "trainer" / "python"), **_COMPILERS,
            )  # fmt: skip
            (wheel,) = made.iterdir()
            self.assertRegex(wheel.name, r"^pliant-[0-9.]+-py3-none-manylinux_2_\d+_\w+\.whl$")
            self.assert_named_after_what_it_needs(wheel, pathlib.Path(folder))
            with zipfile.ZipFile(wheel) as archive:
                held = set(archive.namelist())
            self.assertLessEqual(_MODULES | {"pliant/lib/libpliant.so"}, held)
            others = ("pliant/", "pyedt/", *_BESIDE)
            strange = {name for name in held if not name.startswith(others)}
            self.assertEqual({name for name in strange if ".dist-info/" not in name}, set())

            install = ["-m", "pip", "install", "--no-index", "--no-deps", "--target", str(site)]
            self.run_it(*install, str(wheel))
            said = self.run_it(
                "-m", "pliant", "doctor", PYTHONPATH=str(site), PLIANT_LIBRARY="", PLIANT_BIN=""
            )
            self.assertIn(str(site), said)  # the library of this package is used


if __name__ == "__main__":
    unittest.main()
