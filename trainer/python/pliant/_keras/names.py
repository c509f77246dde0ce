"""What variables are called in checkpoints: as Keras calls them in a program that builds its model first.

Keras counts the layers of a process that were given no name (dense, dense_1, ...). A notebook that builds its model again
must find the checkpoint of the first one, so they are counted in each model anew.
"""

import re
from collections.abc import Sequence
from typing import Any

import keras


def _kind(layer: Any) -> str:
    """As Keras makes a name of a class: BatchNormalization → batch_normalization."""
    name = re.sub(r"\W+", "", type(layer).__name__)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def _counted(model: keras.Model) -> dict[str, str]:
    """The layers that Keras has named, by what they are called here."""
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
    """By the identity of the variable."""
    counted = _counted(model)
    names = [
        "/".join(counted.get(part, part) for part in variable.path.split("/"))
        for variable in model.weights
    ]
    return dict(zip(map(id, model.weights), _unique(names), strict=True))


def names_of_optimizer(
    variables: Sequence[Any], weights: Sequence[Any], names: dict[int, str]
) -> list[str]:
    """Keras puts the weight's path into the variable's: the name here has the weight's name."""
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
