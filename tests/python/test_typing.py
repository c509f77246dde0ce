"""Programs that call pliant.attach, as a type checker sees them: mypy --strict."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import pliant

# In place of the frameworks: their types take mypy minutes.
STUBS = {
    "torch/__init__.pyi": "from . import nn as nn, optim as optim, amp as amp\n"
    "class Tensor:\n    def __float__(self) -> float: ...\n",
    "torch/nn.pyi": "class Module: ...\n",
    "torch/optim.pyi": "class Optimizer: ...\n",
    "torch/amp.pyi": """
from typing import Any
from . import Tensor
from .optim import Optimizer
class GradScaler:
    def scale(self, outputs: Tensor) -> Tensor: ...
    def unscale_(self, optimizer: Optimizer) -> None: ...
    def step(self, optimizer: Optimizer) -> float | None: ...
    def update(self, new_scale: float | Tensor | None = None) -> None: ...
    def get_scale(self) -> float: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...
""",
    "keras/__init__.pyi": "from . import optimizers as optimizers\nclass Model: ...\n",
    "keras/optimizers.pyi": "class Optimizer: ...\n",
    "mypy.ini": "[mypy]\nstrict = True\nfollow_imports = silent\nno_site_packages = True\n",
}

HEAD = """
import pathlib
from typing import Any
import keras
import pliant
import torch

net, sgd, data = torch.nn.Module(), torch.optim.Optimizer(), [(1.0, 2)]
model, adam = keras.Model(), keras.optimizers.Optimizer()
common: dict[str, Any] = {"epochs": 1}

def loss(batch: Any) -> torch.Tensor:
    return torch.Tensor()

def both(batch: Any) -> tuple[torch.Tensor, int]:
    return torch.Tensor(), 1

def words(batch: Any) -> str:
    return ""

"""

TORCH = "pliant._torch.elastic.TorchElastic"
KERAS = "pliant._keras.elastic.KerasElastic"

# statement → the type that mypy reveals, or the part of its error
PROGRAM = {
    "reveal_type(pliant.attach(net, sgd, data, epochs=1))": TORCH,
    "reveal_type(pliant.attach(model=net, optimizer=sgd, train_data=data, epochs=1, overlap=False))": TORCH,
    "reveal_type(pliant.attach(net, sgd, data, epochs=1, test_data=data, evaluate=loss))": TORCH,
    "reveal_type(pliant.attach(net, sgd, data, epochs=1, evaluate=both, collate_fn=tuple, num_workers=2))": TORCH,
    "reveal_type(pliant.attach(net, sgd, data, epochs=1, scaler=torch.amp.GradScaler()))": TORCH,
    "reveal_type(pliant.attach(net, sgd, data, epochs=1, checkpoint_dir=pathlib.Path('a')))": TORCH,
    "reveal_type(pliant.attach(net, sgd, data, epochs=1, on_nonfinite='skip', loss_reduction='sum'))": TORCH,
    "reveal_type(pliant.attach(net, sgd, data, **common))": TORCH,
    "reveal_type(pliant.attach(model, adam, data, epochs=1, loss='mse'))": KERAS,
    "reveal_type(pliant.attach(model, 'adam', data, epochs=1, seed=1, threads=None, drop_last=True))": KERAS,
    "next(pliant.attach(net, sgd, data, epochs=1).steps()).backward(torch.Tensor())": "",
    "next(pliant.attach(net, sgd, data, epochs=1).steps()).train(data)": '"TorchStep" has no attribute "train"',
    "next(pliant.attach(model, adam, data, epochs=1).steps()).train(data)": "",
    "pliant.attach(net, sgd, data, max_steps='1')": "No overload variant",
    "pliant.attach(net, sgd, data, 1)": "No overload variant",
    "pliant.attach(net, sgd, epochs=1)": "No overload variant",
    "pliant.attach(net, sgd, data, epochs='1')": "No overload variant",
    "pliant.attach(net, sgd, data, epochs=1, batchsize=8)": "No overload variant",
    "pliant.attach(net, sgd, data, epochs=1, batch_size='8')": "No overload variant",
    "pliant.attach(net, sgd, data, epochs=1, on_nonfinite='typo')": "No overload variant",
    "pliant.attach(net, sgd, data, epochs=1, loss='mse')": "No overload variant",
    "pliant.attach(net, 'sgd', data, epochs=1)": "No overload variant",
    "pliant.attach(net, sgd, data, epochs=1, evaluate=words)": 'Argument "evaluate" to "__call__" of "Attach"',
    "pliant.attach(net, sgd, data, epochs=1, scaler=sgd)": "No overload variant",
    "pliant.attach(model, adam, data, epochs=1, overlap=False)": "No overload variant",
    "pliant.attach(model, sgd, data, epochs=1)": "No overload variant",
    "pliant.attach('model', 'adam', data, epochs=1)": "No overload variant",
}


def said_by_mypy(program):
    """Line → its first error or revealed type."""
    with tempfile.TemporaryDirectory(prefix="pliant-typing-") as folder:
        for name, text in {**STUBS, "program.py": program}.items():
            file = pathlib.Path(folder, name)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        ran = subprocess.run(
            [sys.executable, "-m", "mypy", "--python-version", "3.10", "program.py"],
            cwd=folder, env={**os.environ, "MYPYPATH": f".:{pathlib.Path(pliant.__file__).parents[1]}"},
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
    if ran.stderr:
        raise AssertionError(ran.stderr)
    found = re.findall(r"^program\.py:(\d+): (error|note): (.*)$", ran.stdout, re.MULTILINE)
    return {
        int(line): text
        for line, kind, text in reversed(found)
        if kind == "error" or text.startswith("Revealed")
    }


class TypingTest(unittest.TestCase):
    def test_right_programs_have_a_framework_and_wrong_ones_an_error(self):
        said = said_by_mypy(HEAD + "\n".join(PROGRAM) + "\n")
        first = HEAD.count("\n") + 1
        for line, (statement, expected) in enumerate(PROGRAM.items(), first):
            with self.subTest(statement):
                if expected in (TORCH, KERAS):
                    self.assertEqual(said.pop(line, ""), f'Revealed type is "{expected}"')
                elif expected:
                    self.assertIn(expected, said.pop(line, ""))
        self.assertEqual(said, {}, "and no other line has an error")


if __name__ == "__main__":
    unittest.main(verbosity=2)
