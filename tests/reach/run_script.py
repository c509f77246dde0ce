"""run_script.py FOLDER ARGUMENT...: runs FOLDER/before.py, if there is one, and FOLDER/script.py there, with {out} in the
arguments replaced."""

import os
import pathlib
import runpy
import sys

folder = sys.argv[1]
out = pathlib.Path(os.environ.get("PLIANT_CHECKPOINT_DIR", folder), "out")
sys.argv = ["script.py", *(argument.replace("{out}", str(out)) for argument in sys.argv[2:])]
os.chdir(folder)
sys.path[0] = folder
if os.path.exists("before.py"):
    runpy.run_path("before.py")
runpy.run_path("script.py", run_name="__main__")
