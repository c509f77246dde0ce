"""Makes JSON schemas of Kubernetes' kinds for kubeconform, from the OpenAPI documents of the API
server and of CustomResourceDefinitions. Strict: an unknown field is an error."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_DEFINITIONS = "definitions.json"
_KIND = "x-kubernetes-group-version-kind"

# Quantities are strings on the wire, but may be written as numbers.
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"

# For kubeconform's -schema-location.
LOCATION = "{{ .ResourceKind }}{{ .KindSuffix }}.json"


def write_schemas(openapi: Path, customs: Sequence[dict[str, Any]], directory: Path) -> None:
    """Writes one file per kind: the kinds of the OpenAPI document, and those of `customs`, which are
    CustomResourceDefinitions."""
    definitions = json.loads(openapi.read_text())["definitions"]
    for schema in definitions.values():
        _make_strict(schema)
    definitions[_QUANTITY]["type"] = ["string", "number"]
    _write(directory / _DEFINITIONS, {"definitions": definitions})
    for name, schema in definitions.items():
        for kind in schema.get(_KIND, []):
            reference = {"$ref": f"{_DEFINITIONS}#/definitions/{name}"}
            _write(directory / _file(**kind), reference)

    for custom in customs:
        _write_custom(custom["spec"], directory)


def _write_custom(spec: dict[str, Any], directory: Path) -> None:
    for version in spec["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        # The CRD's own schema of metadata has no fields; the API server's has them.
        schema["properties"].pop("metadata", None)
        _make_strict(schema)
        metadata = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
        schema["properties"]["metadata"] = {"$ref": f"{_DEFINITIONS}#/definitions/{metadata}"}
        file = _file(spec["group"], version["name"], spec["names"]["kind"])
        _write(directory / file, schema)


def _write(path: Path, schema: dict[str, Any]) -> None:
    path.write_text(json.dumps(schema))


def _file(group: str, version: str, kind: str) -> str:
    # kubeconform's file names have only the first part of the group.
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
    # A field named "properties" is itself a schema, with a type.
    properties = schema.get("properties")
    closed = isinstance(properties, dict) and not schema.get("x-kubernetes-preserve-unknown-fields")
    if closed and schema.get("type") == "object":
        schema.setdefault("additionalProperties", False)
    for each in schema.values():
        _make_strict(each)
