"""Where tests find the repository's files."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "samples"
DATA = ROOT / "tests" / "data"
PARTITIONED = DATA / "partitioned"
"""Modules after the SPMD partitioner."""
COMPILED = DATA / "tpu-compiler"
"""What the TPU compiler made of modules."""
