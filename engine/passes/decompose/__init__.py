"""AllGather→einsum and einsum→ReduceScatter become loops of partial einsums and collective permutes.

The technique is that of Wang et al., "Overlap Communication with Dependent Computation via Decomposition in Large Deep
Learning Models", ASPLOS '23 (volume 1, pages 93-106): "Wang et al. §5.4" in a docstring is its section.
"""
