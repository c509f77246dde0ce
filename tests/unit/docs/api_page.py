"""Makes docs/api.md from the custom resource definitions: python3 tests/unit/docs/api_page.py > docs/api.md"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from documents import CRDS, JOB_KIND

_HEAD = """\
# API reference

Generated from `crds/` by `tests/unit/docs/api_page.py`; a test compares the two. `kubectl explain etj.spec.elastic` prints the same in a terminal, one level at a time.
[Submit a job](tasks/submit-a-job.md) explains the fields that most jobs need, and [conditions](conditions.md) what the status says.
"""

# Fields below are those of Kubernetes' own types.
_NOT_FOLLOWED = "spec.template.spec"
_FORMATS = {"date-time": "time, RFC 3339"}

Schema = Mapping[str, Any]


def main() -> None:
    sys.stdout.write(page([yaml.safe_load(file.read_text()) for file in CRDS]))


def page(definitions: Sequence[Mapping[str, Any]]) -> str:
    lines = [_HEAD]
    for definition in definitions:
        kind = definition["spec"]["names"]["kind"]
        lines.append(f"- [{kind}](#{_anchor(kind)})")
    for definition in definitions:
        lines += ["", *_kind(definition["spec"])]
    return "\n".join(lines) + "\n"


def _kind(spec: Mapping[str, Any]) -> Iterator[str]:
    kind, plural = spec["names"]["kind"], spec["names"]["plural"]
    (version,) = spec["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    yield from (f"## {kind}", "", *_facts(spec, version), "")
    yield from (schema["description"], "", *_rules(schema))
    # Paths of fields without a kind are those of jobs, here as in the other pages.
    of_kind = "" if kind == JOB_KIND else f"{kind}."
    for name in ("spec", "status"):
        yield from _section(of_kind + name, schema["properties"][name], level=3)
    yield from (f"### Columns of kubectl get {plural}", "", "| column | field | meaning |", "|---|---|---|")
    for column in version["additionalPrinterColumns"]:
        wide = " With `-o wide`." if column.get("priority") else ""
        yield f"| {column['name']} | `{of_kind}{column['jsonPath'][1:]}` | {column['description']}.{wide} |"


def _facts(spec: Mapping[str, Any], version: Mapping[str, Any]) -> Iterator[str]:
    names = spec["names"]
    scope = "namespaced" if spec["scope"] == "Namespaced" else "cluster-scoped"
    yield f"- `apiVersion: {spec['group']}/{version['name']}`, `kind: {names['kind']}`"
    yield f"- resource `{names['plural']}`, short name `{', '.join(names['shortNames'])}`, {scope}"
    if scale := version["subresources"].get("scale"):
        replicas = scale["specReplicasPath"].removeprefix(".")
        yield f"- subresources `status` and `scale`: `kubectl scale` sets `{replicas}`"
    else:
        yield "- subresource `status`"


def _anchor(heading: str) -> str:
    return "".join(each for each in heading.lower() if each.isalnum())


def _section(path: str, schema: Schema, level: int) -> Iterator[str]:
    """A heading, the description, the fields and the rules of an object; then the same of each object in it."""
    yield f"{'#' * level} {path}"
    yield ""
    yield from (schema["description"], "")
    required = schema.get("required", [])
    fields = schema["properties"]
    yield from (_item(path, name, field, name in required) for name, field in fields.items())
    yield ""
    yield from _rules(schema)
    for name, field in fields.items():
        if _has_section(path, field):
            yield from _section(_below(path, name, field), _object_of(field), level=min(level + 1, 4))


def _object_of(field: Schema) -> Schema:
    return {**field["items"], "description": field["description"]} if "items" in field else field


def _below(path: str, name: str, field: Schema) -> str:
    return f"{path}.{name}{'[]' if 'items' in field else ''}"


def _has_section(path: str, field: Schema) -> bool:
    return path != _NOT_FOLLOWED and "properties" in _object_of(field)


def _item(path: str, name: str, field: Schema, required: bool) -> str:
    facts = [_type_of(field), *(["required"] if required else [])]
    if not isinstance(field.get("default", {}), dict):
        facts.append(f"default `{_text(field['default'])}`")
    description = " ".join(field["description"].split())
    if _has_section(path, field):
        target = _below(path, name, field)
        description += f" [Fields](#{_anchor(target)})."
    rules = "" if _has_section(path, field) else "".join(f"\n  - {rule}" for rule in _messages(field))
    return f"- **`{name}`** ({', '.join(facts)}): {description}{rules}"


def _type_of(field: Schema) -> str:
    if "items" in field:
        most = f", at most {field['maxItems']} items" if "maxItems" in field else ""
        return f"list of {_type_of(field['items'])}{most}"
    if "additionalProperties" in field:
        return "map"
    if "enum" in field:
        return "one of " + ", ".join(f'`{each}`' if each else '`""`' for each in field["enum"])
    kind = _FORMATS.get(field.get("format", ""), field.get("type", "any"))
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and high is not None:
        return f"{kind}, {low} to {high}"
    if low is not None:
        return f"{kind}, at least {low}"
    if high is not None:
        return f"{kind}, at most {high}"
    return f"{kind}, at most {field['maxLength']} characters" if "maxLength" in field else kind


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _messages(schema: Schema) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", []):
        message = rule["message"]
        yield message if message.endswith(".") else message + "."


def _rules(schema: Schema) -> list[str]:
    messages = [f"- {each}" for each in _messages(schema)]
    return ["The API server checks:", "", *messages, ""] if messages else []


if __name__ == "__main__":
    main()
