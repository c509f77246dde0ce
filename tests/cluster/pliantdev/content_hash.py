"""Names for cached results: a hash of all inputs of a result."""

import hashlib
from collections.abc import Iterable
from pathlib import Path


def content_hash(*inputs: str | Path | Iterable[Path]) -> str:
    """Hashes texts, files, and all files in folders by their relative names and contents. 12 digits
    are sufficient here."""
    digest = hashlib.sha256()

    def add(item: str | Path | Iterable[Path]) -> None:
        if isinstance(item, str):
            digest.update(b"text\0" + item.encode() + b"\0")
        elif isinstance(item, Path) and item.is_dir():
            for file in sorted(item.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    digest.update(str(file.relative_to(item)).encode() + b"\0")
                    add(file)
        elif isinstance(item, Path):
            digest.update(b"file\0" + hashlib.sha256(item.read_bytes()).digest())
        else:
            for each in item:
                add(each)

    for item in inputs:
        add(item)
    return digest.hexdigest()[:12]
