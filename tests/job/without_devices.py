"""Compiles a bundle's step, as a job would, for TPUs that are not there. Prints the final text's figures as JSON.

Run as `python without_devices.py BUNDLE`, in the environment that `lapstrake capture --target tpu:v4:2x2x2` makes.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

sys.path.insert(0, sys.argv[1])

import jax
import lapstrake_job  # type: ignore[import-not-found]  # it comes with the bundle
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh


def main(bundle: str) -> None:
    topology: Any = topologies.get_topology_desc(platform="tpu", topology_name="v4:2x2x2", chip_config_name="megacore")
    plan = lapstrake_job.load(bundle)
    manifest = plan.manifest()
    signature = manifest["signature"]
    # There is no step to compare with here.
    mesh = Mesh(np.array(topology.devices).reshape(signature["mesh"]["sizes"]), signature["mesh"]["names"])
    weak = [False] * len(signature["results"])
    tuned = lapstrake_job.jitted("tuned", signature, plan.read("tuned.mlirbc", manifest), mesh, weak)
    ranks = plan.ranks(manifest)
    structs = [
        jax.ShapeDtypeStruct(
            tuple(leaf["shape"]),
            leaf["dtype"],
            sharding=jax.sharding.NamedSharding(mesh, lapstrake_job._spec(leaf)),
        )
        for leaf in signature["arguments"]
    ]
    hook = lapstrake_job.OrderHook("jit_tuned", ranks, "tpu", "tuned")
    hook.register()
    text = str(tuned.lower(*structs).compile().as_text())
    in_order, elsewhere, _, _ = lapstrake_job.standing(text, ranks)
    permutes = len(re.findall(r" collective-permute-start\(", text))
    aliased = "input_output_alias" in text.partition("\n")[0]
    print(json.dumps([jax.__version__, hook.fired, permutes, in_order, elsewhere, aliased]))


if __name__ == "__main__":
    main(sys.argv[1])
