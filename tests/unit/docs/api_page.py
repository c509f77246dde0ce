"""Makes docs/api.md from the custom resource definition: python3 tests/unit/docs/api_page.py > docs/api.md"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from documents import CRD

_HEAD = """\
# API reference: ElasticTrainingJob

Generated from `crds/pliant.dev_elastictrainingjobs.yaml` by `tests/unit/docs/api_page.py`; a test compares the two. `kubectl explain etj.spec.elastic` prints the same in a terminal, one level at a time.
[Submit a job](tasks/submit-a-job.md) explains the fields that most jobs need, and [conditions](conditions.md) what the status says.
"""

# Fields below are those of Kubernetes' own types.
_NOT_FOLLOWED = "spec.template.spec"
_FORMATS = {"date-time": "time, RFC 3339"}

Schema = Mapping[str, Any]


def main() -> None:
    sys.stdout.write(page(yaml.safe_load(CRD.read_text())))


def page(definition: Mapping[str, Any]) -> str:
    names = definition["spec"]["names"]
    (version,) = definition["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    lines = [_HEAD, *_facts(definition["spec"]["group"], version["name"], names), ""]
    lines += [schema["description"], "", *_rules(schema)]
    for name in ("spec", "status"):
        lines += _section(name, schema["properties"][name], level=2)
    lines += ["## Columns of kubectl get", "", "| column | field | meaning |", "|---|---|---|"]
    for column in version["additionalPrinterColumns"]:
        wide = " With `-o wide`." if column.get("priority") else ""
        lines.append(f"| {column['name']} | `{column['jsonPath'][1:]}` | {column['description']}.{wide} |")
    return "\n".join(lines) + "\n"


def _facts(group: str, version: str, names: Mapping[str, Any]) -> Iterator[str]:
    yield f"- `apiVersion: {group}/{version}`, `kind: {names['kind']}`"
    yield f"- resource `{names['plural']}`, short name `{', '.join(names['shortNames'])}`, namespaced"
    yield "- subresources `status` and `scale`: `kubectl scale` sets `spec.elastic.maxLearners`"


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
    if "default" in field and field["default"] != {}:
        facts.append(f"default `{_text(field['default'])}`")
    description = " ".join(field["description"].split())
    if _has_section(path, field):
        target = _below(path, name, field)
        anchor = "".join(each for each in target.lower() if each.isalnum())
        description += f" [Fields](#{anchor})."
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
