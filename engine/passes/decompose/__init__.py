"""AllGather→einsum and einsum→ReduceScatter become loops of partial einsums and collective permutes."""
