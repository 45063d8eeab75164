"""What a step is called with, against what a plan was made for: arguments one by one, and the mesh they lie on."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding

from .mismatch import Mismatch
from .program import spec


def argument_difference(signature: Mapping[str, Any], called: Any, mesh: Any, donated: Sequence[bool] = ()) -> str:
    """How the first argument that differs does, by what its step calls it; `donated` is not known of later calls."""
    plan = {spoken(leaf["path"], signature): leaf for leaf in signature["arguments"]}
    there = {
        name: _described(leaf["path"], f"{leaf['dtype']}{leaf['shape']}", spec(leaf), leaf["donated"])
        for name, leaf in plan.items()
    }
    here = {}
    for number, (keys, leaf) in enumerate(jax.tree_util.tree_flatten_with_path(called)[0]):
        path = jax.tree_util.keystr(keys)
        name = spoken(path, signature)
        wanted = plan.get(name, {"spec": (), "donated": False, "kept": False})
        given = donated[number] if donated else wanted["donated"]
        here[name] = _described(path, _type(leaf), _place(leaf, wanted, mesh), given)
    return difference("argument", here, there)


def difference(kind: str, here: Mapping[Any, str], there: Mapping[Any, str]) -> str:
    """The first argument or result that is another than the plan's, and how many more are; empty where none is."""
    differ = [name for name in dict.fromkeys((*there, *here)) if here.get(name) != there.get(name)]
    if not differ:
        return ""
    name, others = differ[0], len(differ) - 1
    more = f" (and {others} other{'s' * (others > 1)})" if others else ""
    return f"{kind} {name} is {here.get(name, 'missing')}, the plan was made for {there.get(name, 'none')}{more}"


def spoken(path: str, signature: Mapping[str, Any]) -> str:
    """An argument's path as its step writes it: `state['w']` for `[0][0]['w']`, in which arguments by place come
    first, or for `[1]['state']['w']`."""
    found = re.match(r"\[(\d)\]\['?(.+?)'?\](.*)", path, re.DOTALL)
    assert found is not None, path  # every leaf lies in the pair of args and kwargs
    by_name, argument, rest = found.groups()
    parameters = signature.get("parameters", ())  # captures of before did not say
    if by_name == "0" and int(argument) < len(parameters):
        argument = parameters[int(argument)]
    return f"{argument}{rest}"


def mesh_of(lowered: Any, called: Any, written: Mapping[str, Any]) -> Any:
    """The mesh that the arguments lie on, or that the step was jitted for. Raises Mismatch for another mesh."""
    compile_args = getattr(getattr(lowered, "_lowering", None), "compile_args", {})
    leaves = jax.tree_util.tree_leaves(called)
    shardings = [*(getattr(leaf, "sharding", None) for leaf in leaves), *compile_args.get("in_shardings", ())]
    meshes = [s.mesh for s in shardings if isinstance(s, NamedSharding) and isinstance(s.mesh, Mesh)]
    there = dict(zip(written["names"], written["sizes"], strict=True))
    if not meshes:
        raise Mismatch(f"no argument lies on a mesh, the plan was made for {there}: put them on it, or jit for it")
    mesh = next((m for m in meshes if m.size == math.prod(written["sizes"])), meshes[0])
    here = dict(zip(mesh.axis_names, mesh.axis_sizes, strict=True))
    if list(here.items()) != list(there.items()):
        raise Mismatch(f"the mesh is {here}, the plan was made for {there}: capture and tune it again")
    # Captured without devices, their order is not known; the plan's results do not depend on it.
    ids = [d.id for d in mesh.devices.flat]
    order = [sorted(ids).index(id_) for id_ in ids]
    if written["devices"] not in (None, order):
        raise Mismatch(
            f"the mesh has its devices in the order {order[:8]}, the plan was made for {written['devices'][:8]}"
            ": make the mesh alike, or capture and tune it again"
        )
    return mesh


def _described(path: str, type_: str, place: Any, donated: bool) -> str:
    return f"{type_} as {place}{', donated' * donated}{', by keyword' * path.startswith('[1]')}"


def _type(leaf: Any) -> str:
    try:
        kind = jax.typeof(leaf)
    except TypeError:
        return type(leaf).__name__
    return f"{kind.dtype}{list(kind.shape)}"


def _place(leaf: Any, wanted: Mapping[str, Any], mesh: Any) -> Any:
    """A leaf's PartitionSpec: the plan's, where it does not matter or means the same."""
    sharding, meant = getattr(leaf, "sharding", None), spec(wanted)
    if not isinstance(sharding, NamedSharding) or not wanted["kept"]:
        return meant
    if sharding.is_equivalent_to(NamedSharding(mesh, meant), leaf.ndim):
        return meant
    return sharding.spec if sharding.mesh == mesh else f"{sharding.spec} of another mesh"
