"""Files of one name, told apart by as little of the folders they lie in as will do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath


def telling_folders(path: str, others: Sequence[str]) -> str:
    """The folders nearest to a file by which its path differs from others, as what comes before its name: ``run2/``,
    ``run2/…/`` where the folders below are the same in all. Empty where there are no others, or its name differs."""
    shown, shared = _telling(path, others)
    return _joined(*shown, *(["…"] if shared > 1 else []), "") if shown else ""


def file_names(paths: Sequence[str]) -> tuple[str, ...]:
    """Name of each file with the folder it lies in, and with some of those above where several would be called alike:
    ``step.hlo  —  run2/…/capture``."""
    places = [PurePath(path) for path in paths]
    found = []
    for place in places:
        alike = [str(other) for other in places if (other.name, other.parent.name) == (place.name, place.parent.name)]
        shown, shared = _telling(str(place), alike)
        folders = _joined(*shown, *(["…"] if shared > 2 else []), place.parent.name)
        found.append(f"{place.name}  —  {folders}" if folders else place.name)
    return tuple(found)


def _telling(path: str, others: Sequence[str]) -> tuple[tuple[str, ...], int]:
    """The shortest run of folders that no other path has at this place, and how many parts below it are in all."""
    parts = PurePath(path).parts
    shared = [_shared(parts, other) for other in (PurePath(other).parts for other in others) if other != parts]
    depth = 1 + max(shared, default=0)
    if depth == 1 or depth > len(parts):
        return (), 0
    return parts[-depth : -max(1, min(shared))], min(shared)


def _joined(*folders: str) -> str:
    """Folders as a path; the root is a folder like others."""
    return "/".join(folders).replace("//", "/")


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many parts at their ends two paths have in common."""
    count = 0
    for mine, theirs in zip(reversed(one), reversed(other), strict=False):
        if mine != theirs:
            break
        count += 1
    return count
