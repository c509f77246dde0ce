"""Names of variables in checkpoints: the names that Keras gives to the first model of a process.

Keras numbers the unnamed layers of a process (dense, dense_1, ...). A notebook that builds its
model again must find the checkpoint of the first one, so the layers are numbered for each model.
"""

import re
from collections.abc import Sequence
from typing import Any

import keras


def _kind(layer: Any) -> str:
    """The name that Keras makes from the class: BatchNormalization → batch_normalization."""
    name = re.sub(r"\W+", "", type(layer).__name__)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def _counted(model: keras.Model) -> dict[str, str]:
    """For layers that Keras named: Keras' name → the name used here."""
    counts: dict[str, set[int]] = {}
    for layer in model._flatten_layers():
        kind = _kind(layer)
        numbered = re.fullmatch(rf"{re.escape(kind)}(?:_(\d+))?", layer.name)
        if numbered:
            counts.setdefault(kind, set()).add(int(numbered[1] or 0))
    names = {}
    for kind, present in counts.items():
        for place, count in enumerate(sorted(present)):
            names[f"{kind}_{count}" if count else kind] = f"{kind}_{place}" if place else kind
    return names


def names_of_weights(model: keras.Model) -> dict[int, str]:
    """Names of the model's weights, by the variable's identity."""
    counted = _counted(model)
    names = [
        "/".join(counted.get(part, part) for part in variable.path.split("/"))
        for variable in model.weights
    ]
    return dict(zip(map(id, model.weights), _unique(names), strict=True))


def names_of_optimizer(
    variables: Sequence[Any], weights: Sequence[Any], names: dict[int, str]
) -> list[str]:
    """Keras puts a weight's path into its optimizer variable's path. The name used here has the
    weight's name instead."""
    slugs = sorted(
        ((each.path.replace("/", "_"), names[id(each)].replace("/", "_")) for each in weights),
        key=lambda pair: -len(pair[0]),
    )
    result = []
    for variable in variables:
        own = variable.path.partition("/")[2] or variable.path
        for slug, name in slugs:
            if own.startswith(slug):
                own = name + own[len(slug) :]
                break
        result.append(own)
    return _unique(result)


def _unique(names: Sequence[str]) -> list[str]:
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return unique
