"""Files that travel to a user's job and are read there on their own: standard library and jax, nothing of ours."""
