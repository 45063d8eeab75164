"""What `lapstrake_job`, beside this folder in a bundle, is made of: it needs jax and the standard library alone."""
