"""The program that runs: a bundle's StableHLO in a `shard_map` over the job's mesh; jit does the rest."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec
from jax.tree_util import tree_leaves, tree_structure, tree_unflatten

from . import jax_private


def jitted(
    name: str, signature: Mapping[str, Any], program: bytes, mesh: Any, weak: Sequence[bool], trees: Sequence[Any] = ()
) -> Any:
    """A jitted function whose body is the tuned program, one call on each device, to be lowered for `structs`.

    `trees` are the structures of its arguments, by place and by name, and of its results; without them it takes and
    gives leaves. `weak` says which results are weakly typed.
    """
    arguments, results = signature["arguments"], signature["results"]
    in_tree, out_tree = trees or (tree_structure(((0,) * len(arguments), {})), tree_structure((0,) * len(results)))
    kept = kept_arguments(signature)
    shapes = [
        jax.core.ShapedArray(tuple(leaf["local_shape"]), jax.numpy.dtype(leaf["dtype"]), weak_type=weakly)
        for leaf, weakly in zip(results, weak, strict=True)
    ]
    primitive = _primitive(name, program, shapes)
    on_device: Any = jax.shard_map(
        lambda *local: tuple(primitive.bind(*local)),
        mesh=mesh,
        in_specs=tuple(spec(arguments[number]) for number in kept),
        out_specs=tuple(spec(leaf) for leaf in results),
        check_vma=False,
    )

    def run(*args: Any, **kwargs: Any) -> Any:
        leaves = tree_leaves((args, kwargs))
        return tree_unflatten(out_tree, on_device(*(leaves[number] for number in kept)))

    run.__name__ = name
    by_place, by_name = tree_unflatten(in_tree, [leaf["donated"] for leaf in arguments])
    return jax.jit(
        run,
        out_shardings=tree_unflatten(out_tree, [NamedSharding(mesh, spec(leaf)) for leaf in results]),
        donate_argnums=[number for number, argument in enumerate(by_place) if any(tree_leaves(argument))],
        donate_argnames=[key for key, argument in by_name.items() if any(tree_leaves(argument))],
    )


def structs(signature: Mapping[str, Any], mesh: Any) -> list[jax.ShapeDtypeStruct]:
    """The arguments that a plan is for, leaf by leaf."""
    return [
        jax.ShapeDtypeStruct(leaf["shape"], jax.numpy.dtype(leaf["dtype"]), sharding=NamedSharding(mesh, spec(leaf)))
        for leaf in signature["arguments"]
    ]


def spec(leaf: Mapping[str, Any]) -> PartitionSpec:
    """How a leaf lies on the mesh."""
    return PartitionSpec(*(tuple(p) if isinstance(p, list) else p for p in leaf["spec"]))


def kept_arguments(signature: Mapping[str, Any]) -> list[int]:
    """Numbers of the arguments that the program takes: jit drops what it does not need."""
    return [number for number, leaf in enumerate(signature["arguments"]) if leaf["kept"]]


def grouping() -> dict[str, str]:
    """Options with which compilers keep scheduling groups, beside what the job disables already."""
    disabled = re.findall(r"--xla_disable_hlo_passes=(\S+)", os.environ.get("XLA_FLAGS", ""))
    return {"xla_disable_hlo_passes": ",".join([*disabled[-1:], "legalize-scheduling-annotations"])}


def donated(lowered: Any, signature: Mapping[str, Any]) -> list[int]:
    """Which leaves of a lowered function's arguments give their buffers to results."""
    main: Any = jax_private.ir.SymbolTable(lowered.compiler_ir().operation)["main"]
    gives = ["tf.aliasing_output" in said or "jax.buffer_donor" in said for said in main.arg_attrs]
    return [number for number, given in zip(kept_arguments(signature), gives, strict=True) if given]


def freeing(compiled: Callable[..., Any], forgotten: Sequence[int]) -> Callable[..., Any]:
    """A compiled function that frees these leaves of its arguments, whose donation its compiler forgot."""

    def run(*args: Any, **kwargs: Any) -> Any:
        results = compiled(*args, **kwargs)
        leaves = tree_leaves((args, kwargs))
        for leaf in (leaves[number] for number in forgotten):
            if isinstance(leaf, jax.Array):
                leaf.delete()
        return results

    return run


def _primitive(name: str, program: bytes, shapes: Sequence[Any]) -> Any:
    """A primitive whose lowering is a call of the program, put into the module that jit builds."""
    ir, mlir = jax_private.ir, jax_private.mlir
    primitive = jax_private.Primitive(name)
    primitive.multiple_results = True
    primitive.def_abstract_eval(lambda *_: list(shapes))

    def lower(context: Any, *operands: Any) -> Any:
        into = context.module_context
        inlined = mlir.merge_mlir_modules(
            into.module, f"{name}_main", ir.Module.parse(program), dst_symtab=into.symbol_table
        )
        types = [ir.RankedTensorType.get(a.shape, mlir.dtype_to_ir_type(a.dtype)) for a in context.avals_out]
        return jax_private.func.CallOp(types, ir.FlatSymbolRefAttr.get(inlined), operands).results

    mlir.register_lowering(primitive, lower)
    return primitive
