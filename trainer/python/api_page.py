"""Makes docs/python-api.md from the package's docstrings: python3 api_page.py > docs/python-api.md

It reads the sources; only attach is imported, as its settings are documented at run time. It needs
no framework.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pliant

_PACKAGE = Path(__file__).parent / "pliant"

# The public API: heading, module, name in the module.
_ENTRIES = (
    ("pliant.Elastic", "_loop.py", "Elastic"),
    ("pliant.Step", "_step.py", "Step"),
    ("A step of a PyTorch model", "_torch/elastic.py", "TorchStep"),
    ("A step of a Keras model", "_keras/elastic.py", "KerasStep"),
    ("pliant.FabricModel", "fabric.py", "FabricModel"),
    ("pliant.accelerate.Accelerator", "accelerate.py", "Accelerator"),
    ("pliant.keras.fit", "keras.py", "fit"),
    ("pliant.transformers.PliantTrainer", "transformers.py", "PliantTrainer"),
    ("pliant.transformers.elastic", "transformers.py", "elastic"),
    ("pliant.Callback", "_callback.py", "Callback"),
    ("pliant.LambdaCallback", "_callback.py", "LambdaCallback"),
    ("pliant.ProgressBar", "callbacks.py", "ProgressBar"),
    ("pliant.TensorBoard", "callbacks.py", "TensorBoard"),
    ("pliant.WandB", "_tracking/wandb.py", "WandB"),
    ("pliant.MLflow", "_tracking/mlflow.py", "MLflow"),
    ("pliant.EarlyStopping", "callbacks.py", "EarlyStopping"),
    ("pliant.BestModel", "_best_model.py", "BestModel"),
    ("pliant.StreamShard", "_streams.py", "StreamShard"),
    ("pliant.data.HuggingFace", "_data/hugging_face.py", "HuggingFace"),
    ("pliant.data.WebDataset", "_data/web_dataset.py", "WebDataset"),
    ("pliant.Evaluation", "_evaluation.py", "Evaluation"),
    ("pliant.request_learners", "_requests.py", "request_learners"),
    ("pliant.scale_learning_rate", "_torch/learning_rate.py", "scale_learning_rate"),
    ("step.shard", "_learner.py", "Shard"),
    ("elastic.plan", "_learner.py", "Plan"),
    ("elastic.job", "_learner.py", "Job"),
    ("elastic.ending", "_learner.py", "Ending"),
    ("pliant.PliantError", "errors.py", "PliantError"),
    ("pliant.InvalidProgram", "errors.py", "InvalidProgram"),
    ("pliant.Diverged", "errors.py", "Diverged"),
    ("pliant.TrainingFailed", "errors.py", "TrainingFailed"),
)

_MADE_BY_USERS = {
    "BestModel",
    "EarlyStopping",
    "FabricModel",
    "HuggingFace",
    "LambdaCallback",
    "ProgressBar",
    "MLflow",
    "TensorBoard",
    "WandB",
    "WebDataset",
}

_HEAD = """\
# The Python API

This page is made of the docstrings by `trainer/python/api_page.py`, and a test compares the two. [python.md](python.md) explains how
a training works.
"""

_Function = ast.FunctionDef


# In front of the names of types.
_MODULES = re.compile(r"\b(?:typing|collections\.abc|pliant\._settings)\.")
_ITEM = re.compile(r"^(?: {4})?([a-z_]+(?:, [a-z_]+)*): (.+)$", re.MULTILINE)


def main() -> None:
    sys.stdout.write(page())


def page() -> str:
    parts = [_HEAD, "## pliant.attach\n", *_attach()]
    for heading, module, name in _ENTRIES:
        source = (_PACKAGE / module).read_text()
        node = _find(ast.parse(source), name)
        parts.append(f"## {heading}\n")
        parts += _function(node, name) if isinstance(node, _Function) else _class(node, source)
    return "\n".join(parts)


def _attach() -> Iterator[str]:
    signature = inspect.signature(pliant.attach)
    shown = [_MODULES.sub("", str(each)) for each in signature.parameters.values()]
    shown.insert(3, "*")
    yield f"```python\n{_call('attach', shown, f' -> {signature.return_annotation}')}\n```\n"
    yield from _text(pliant.attach.__doc__ or "")


def _find(tree: ast.Module, name: str) -> _Function | ast.ClassDef:
    # The last definition: the earlier ones are its overloads.
    *_, found = (n for n in tree.body if isinstance(n, _Function | ast.ClassDef) and n.name == name)
    return found


def _function(node: _Function, shown: str) -> Iterator[str]:
    yield f"```python\n{_signature(node, shown)}\n```\n"
    yield from _text(ast.get_docstring(node) or "")


def _class(node: ast.ClassDef, source: str) -> Iterator[str]:
    yield from _text(ast.get_docstring(node) or "")
    if any(isinstance(each, ast.Call) for each in node.decorator_list):  # a dataclass
        yield from _fields(node, source)
    for each in node.body:
        if not isinstance(each, _Function):
            continue
        decorators = {ast.unparse(one) for one in each.decorator_list}
        if each.name == "__init__" and node.name in _MADE_BY_USERS:
            yield f"```python\n{_signature(each, node.name)}\n```\n"
            continue
        what = ast.get_docstring(each)
        if each.name.startswith("_") or not what:
            continue
        if "property" in decorators:
            yield f"**`{each.name}: {_annotation(each.returns)}`**\n"
        else:
            signature = _signature(each, each.name)
            yield f"```python\n{signature}\n```\n" if "\n" in signature else f"**`{signature}`**\n"
        yield from _text(what)


def _fields(node: ast.ClassDef, source: str) -> Iterator[str]:
    lines = source.splitlines()
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    shown = [line.strip() for line in lines[fields[0].lineno - 1 : fields[-1].end_lineno]]
    yield "```python\n" + "\n".join(line for line in shown if line) + "\n```\n"


def _signature(node: _Function, name: str) -> str:
    returns = f" -> {_annotation(node.returns)}" if name == node.name else ""
    return _call(name, _arguments(node.args), returns)


def _call(name: str, arguments: Iterable[str], returns: str) -> str:
    parts = [part.replace("'", '"') for part in arguments]
    whole = f"{name}({', '.join(parts)}){returns}"
    if len(whole) <= 100:
        return whole
    lines = "".join(f"    {part},\n" for part in parts)
    return f"{name}(\n{lines}){returns}"


def _arguments(arguments: ast.arguments) -> Iterator[str]:
    plain = [each for each in arguments.args if each.arg != "self"]
    missing = [None] * (len(plain) - len(arguments.defaults))
    for argument, default in zip(plain, [*missing, *arguments.defaults], strict=True):
        yield _argument(argument, default)
    if arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(argument, default)
    if arguments.kwarg:
        yield f"**{_argument(arguments.kwarg, None)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    shown = f"{argument.arg}: {_annotation(argument.annotation)}"
    return shown if default is None else f"{shown} = {ast.unparse(default)}"


def _annotation(node: ast.expr | None) -> str:
    """The annotation as text, without quotes."""
    if node is None:
        return "Any"
    return str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)


def _text(docstring: str) -> Iterator[str]:
    """Paragraphs unchanged; a block of `name: description` lines as a list."""
    if not docstring:
        return
    listed: list[str] = []
    for block in inspect.cleandoc(docstring).split("\n\n"):
        lists = _ITEM.match(block.removeprefix("Arguments:\n"))
        for line in block.splitlines():
            named = _ITEM.match(line)
            if lists and named:
                names = ", ".join(f"`{name}`" for name in named[1].split(", "))
                listed.append(f"- {names}: {named[2]}")
            elif line == "Arguments:":
                continue
            else:
                listed.append(f"  {line.strip()}" if listed and line.startswith("    ") else line)
        yield "\n".join(listed) + "\n"
        listed = []


if __name__ == "__main__":
    main()
