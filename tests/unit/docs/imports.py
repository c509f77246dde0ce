"""Finds which Python module of a package imports which, anywhere in its text; cycles of imports; and imported names
that do not exist. No I/O."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath


def module_of(file: str) -> str:
    """`file` is relative to the folder that contains the package."""
    path = PurePosixPath(file).with_suffix("")
    return ".".join(path.parts[:-1] if path.name == "__init__" else path.parts)


def imports(files: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """For each module the modules of the package that it imports. `files`: the texts, by path."""
    modules = {module_of(file): file for file in files}
    return {
        module: frozenset(
            found
            for base, name in _imported(ast.parse(files[file]), _package_of(module, file))
            for found in [_existing(base, name, modules)]
            if found is not None and found != module
        )
        for module, file in modules.items()
    }


def circles(graph: Mapping[str, frozenset[str]]) -> list[tuple[str, ...]]:
    """Modules that import one another, directly or indirectly; each set once, in order."""
    reach = {module: _reachable(graph, module) for module in graph}
    together = {
        tuple(sorted(other for other in reach[module] if module in reach[other]))
        for module in graph
        if module in reach[module]
    }
    return sorted(together)


def missing(package: Mapping[str, str], users: Mapping[str, str]) -> list[str]:
    """Imports by `users` that do not exist in the package: a module, or a name that the module does not bind. Both
    arguments: texts, by path."""
    modules = {module_of(file): file for file in package}
    bound = {module: _bound(ast.parse(package[file])) for module, file in modules.items()}
    packages = {module.split(".")[0] for module in modules}
    return sorted(
        f"{user}: from {base} import {name}" if name else f"{user}: import {base}"
        for user, text in users.items()
        for base, name in _imported(ast.parse(text), _package_of(module_of(user), user))
        if base.split(".")[0] in packages
        if (f"{base}.{name}" not in modules and name not in bound.get(base, ()) if name else base not in modules)
    )


def _bound(tree: ast.AST) -> frozenset[str]:
    """Names that a module's text binds, including those in functions: a name bound only in a function is rarely
    imported."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name.split(".")[0] for alias in node.names)
    return frozenset(names)


def _package_of(module: str, file: str) -> str:
    return module if file.endswith("__init__.py") else module.rpartition(".")[0]


def _imported(tree: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """Each imported module, with the imported name ("" for the module itself)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield from ((base, alias.name) for alias in node.names)


def _existing(base: str, name: str, modules: Mapping[str, str]) -> str | None:
    for candidate in (f"{base}.{name}", base):
        if candidate in modules:
            return candidate
    return None


def _reachable(graph: Mapping[str, frozenset[str]], start: str) -> set[str]:
    found: set[str] = set()
    left = list(graph[start])
    while left:
        module = left.pop()
        if module not in found:
            found.add(module)
            left.extend(graph[module])
    return found
