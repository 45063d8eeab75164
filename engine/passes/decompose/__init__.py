"""AllGather→einsum and einsum→ReduceScatter become loops of partial einsums and collective permutes.

The technique is that of Wang et al., "Overlap Communication with Dependent Computation via Decomposition in Large Deep
Learning Models", ASPLOS '23, https://doi.org/10.1145/3567955.3567959: "Wang et al. §5.4" in a docstring is its section.
"""
