"""Compiles a bundle's step, as a job would, for TPUs that are not there. Prints the final text's figures as JSON.

Run as `python without_devices.py BUNDLE [grouped.mlirbc]`, in the environment that
`lapstrake capture --target tpu:v4:2x2x2` makes.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

sys.path.insert(0, sys.argv[1])

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh
from lapstrake_runtime.bundle import Bundle  # type: ignore[import-not-found]  # it comes with the bundle
from lapstrake_runtime.explaining import computations, standing  # type: ignore[import-not-found]
from lapstrake_runtime.order import OrderHook  # type: ignore[import-not-found]
from lapstrake_runtime.program import grouping, jitted, structs  # type: ignore[import-not-found]


def main(bundle: str, program: str = "tuned.mlirbc") -> None:
    topology: Any = topologies.get_topology_desc(platform="tpu", topology_name="v4:2x2x2", chip_config_name="megacore")
    files = Bundle(bundle)
    manifest = files.manifest()
    signature = manifest["signature"]
    # There is no step to compare with here.
    mesh = Mesh(np.array(topology.devices).reshape(signature["mesh"]["sizes"]), signature["mesh"]["names"])
    weak = [False] * len(signature["results"])
    tuned = jitted("tuned", signature, files.read(program, manifest), mesh, weak)
    ranks = files.ranks(manifest)
    hook = OrderHook("jit_tuned", ranks, "tpu", "tuned", donates=True)
    options = grouping() if program == "grouped.mlirbc" else None
    if options is None:
        hook.register()
    text = str(tuned.lower(*structs(signature, mesh)).compile(options).as_text())
    in_order, elsewhere, _, _ = standing(text, ranks)
    permutes = len(re.findall(r" collective-permute-start\(", text))
    aliased = "input_output_alias" in text.partition("\n")[0]
    groups, together = kept_groups(text)
    print(json.dumps([jax.__version__, hook.fired, permutes, in_order, elsewhere, aliased, groups, together]))


def kept_groups(text: str) -> tuple[int, int]:
    """How many scheduling groups with a transfer a text has, and in how many the einsum stands between start and done,
    with next to nothing else."""
    by_name, fused = computations(text)
    kept = together = 0
    for name, lines in by_name.items():
        found: dict[str, list[tuple[int, str]]] = {}
        for number, line in enumerate(lines if name not in fused else ()):
            group = re.search(r'_scheduling_group_id="(\d+)"', line)
            opcode = re.search(r" ([a-z-]+)\(", line.partition(" = ")[2])
            if group and opcode:
                found.setdefault(group[1], []).append((number, opcode[1]))
        for members in found.values():
            opcodes = [opcode for _, opcode in members]
            if "collective-permute-start" not in opcodes:
                continue
            kept += 1
            between = opcodes[opcodes.count("collective-permute-start") : -opcodes.count("collective-permute-done")]
            together += bool(between) and members[-1][0] - members[0][0] <= len(members)
    return kept, together


if __name__ == "__main__":
    main(*sys.argv[1:])
