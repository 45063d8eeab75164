"""AllGather→einsum and einsum→ReduceScatter become loops of partial einsums and collective permutes.

`find` searches a module for sites, `rings` knows which shard is where at which step, `emit` writes a site in a form,
`gate` says what that gains, and `decide` chooses; `decompose` is the pass.

The technique is that of Wang et al., "Overlap Communication with Dependent Computation via Decomposition in Large Deep
Learning Models", ASPLOS '23 (volume 1, pages 93-106): "Wang et al. §5.4" in a docstring is its section.
"""
