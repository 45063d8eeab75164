"""The forms of a ring free of any HLO: which shard is where at which step, and in which order members are visited."""
