"""Fusions that were made: what is in each, what it waits for, and what could be done instead."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another decision for one fusion, as options of the `fuse` pass."""

    what: str
    """In words: ``leave einsum.3 apart``, ``fuse add.7 with einsum.2``."""
    option: str
    """``apart`` or ``with``."""
    value: str
    """Item to add to that option: ``einsum.3``, ``add.7:einsum.2``."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """One fusion decision. Names are those of the module that the pass was given, but for `name`."""

    name: str
    """Of the fusion instruction; of the einsum where the decision was to leave it apart."""
    instruction: int
    """Its id after the pass."""
    members: tuple[str, ...]
    kind: str
    """XLA's name: ``kLoop``, ``kInput``, ``kOutput``; empty where the decision was to leave an einsum apart."""
    einsum: str
    """Name of the einsum inside; empty when there is none."""
    waits_for: tuple[str, ...]
    """The last dones that it waits for."""
    foreign: tuple[str, ...]
    """Those of them that its einsum does not need: the transfers that the fusion keeps the einsum from hiding."""
    saved_bytes: int
    """Memory traffic that the fusion saves: results that stay inside, written and read once each."""
    alternatives: tuple[Alternative, ...] = ()
