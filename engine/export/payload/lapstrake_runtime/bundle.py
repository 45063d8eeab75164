"""The files of a bundle, as they were written or not at all."""

from __future__ import annotations

import hashlib
import json
import pathlib
import zipfile
from collections.abc import Mapping
from typing import Any

from .mismatch import Mismatch, in_words

SCHEMA = 1


class Bundle:
    """A folder, or a .zip. Whatever it holds is read when it is asked for; all methods raise Mismatch."""

    def __init__(self, path: str) -> None:
        self.path = pathlib.Path(path).absolute()  # jobs change their working directory

    def manifest(self) -> Mapping[str, Any]:
        """What the bundle says of itself, once it is known to be as it was written."""
        try:
            content: dict[str, Any] = json.loads(self._bytes("manifest.json"))
            unsigned = {k: v for k, v in content.items() if k != "digest"}
            text = json.dumps(unsigned, sort_keys=True, separators=(",", ":"))
            whole = content["digest"] == hashlib.sha256(text.encode()).hexdigest()
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise Mismatch(f"{self.path} is no bundle that can be read ({in_words(error)}): copy it whole") from None
        if not whole:
            raise Mismatch(f"{self.path}/manifest.json was changed after it was written: copy the bundle again")
        if content["schema"] != SCHEMA:
            raise Mismatch(
                f"the bundle has schema {content['schema']}, the lapstrake_job that was imported reads {SCHEMA}: "
                "import the one in the bundle"
            )
        return content

    def read(self, name: str, manifest: Mapping[str, Any]) -> bytes:
        """A file, if it is the one that was written."""
        content = self._bytes(name)
        if hashlib.sha256(content).hexdigest() != manifest["files"].get(name):
            raise Mismatch(f"{self.path}/{name} was changed after it was written: copy the bundle again")
        return content

    def ranks(self, manifest: Mapping[str, Any]) -> dict[str, int]:
        """Tag, or instruction name, → place in the plan's order."""
        orders = json.loads(self.read("order.json", manifest))
        return {tag: place for place, tag in enumerate(dict.fromkeys(t for order in orders.values() for t in order))}

    def _bytes(self, name: str) -> bytes:
        if not self.path.exists():
            raise Mismatch(f"{self.path}: a bundle was expected, a folder or a .zip, but there is none: copy it there")
        try:
            if self.path.is_dir():
                return (self.path / name).read_bytes()
            with zipfile.ZipFile(self.path) as archive:
                return archive.read(name)
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise Mismatch(f"{self.path}/{name} cannot be read ({in_words(error)}): copy the bundle again") from None
