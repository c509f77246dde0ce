"""JSON schemas of Kubernetes' kinds, as kubeconform reads them, from the OpenAPI documents of the
API server and of a CustomResourceDefinition. Strict: a field that is not known is refused."""

import json
from pathlib import Path
from typing import Any

_DEFINITIONS = "definitions.json"
_KIND = "x-kubernetes-group-version-kind"

# Quantities are texts on the wire, and may be written as numbers.
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"

# For kubeconform's -schema-location.
LOCATION = "{{ .ResourceKind }}{{ .KindSuffix }}.json"


def write_schemas(openapi: Path, definition: dict[str, Any], directory: Path) -> None:
    """One file a kind: those of the OpenAPI document, and those of `definition`, a
    CustomResourceDefinition."""
    definitions = json.loads(openapi.read_text())["definitions"]
    for schema in definitions.values():
        _make_strict(schema)
    definitions[_QUANTITY]["type"] = ["string", "number"]
    _write(directory / _DEFINITIONS, {"definitions": definitions})
    for name, schema in definitions.items():
        for kind in schema.get(_KIND, []):
            reference = {"$ref": f"{_DEFINITIONS}#/definitions/{name}"}
            _write(directory / _file(**kind), reference)

    spec = definition["spec"]
    for version in spec["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        # Its own schema says only that there is one; the API server knows what it holds.
        schema["properties"].pop("metadata", None)
        _make_strict(schema)
        metadata = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
        schema["properties"]["metadata"] = {"$ref": f"{_DEFINITIONS}#/definitions/{metadata}"}
        file = _file(spec["group"], version["name"], spec["names"]["kind"])
        _write(directory / file, schema)


def _write(path: Path, schema: dict[str, Any]) -> None:
    path.write_text(json.dumps(schema))


def _file(group: str, version: str, kind: str) -> str:
    # As kubeconform makes a name of it: of the group, only the first part.
    short = group.partition(".")[0]
    return "-".join(filter(None, (kind.lower(), short, version))) + ".json"


def _make_strict(schema: Any) -> None:
    if isinstance(schema, list):
        for each in schema:
            _make_strict(each)
    if not isinstance(schema, dict):
        return
    if schema.get("format") == "int-or-string":
        del schema["format"]
        schema["type"] = ["string", "integer"]
    # One that is called "properties" is a schema of its own, which has a type.
    properties = schema.get("properties")
    closed = isinstance(properties, dict) and not schema.get("x-kubernetes-preserve-unknown-fields")
    if closed and schema.get("type") == "object":
        schema.setdefault("additionalProperties", False)
    for each in schema.values():
        _make_strict(each)
