"""Ours and the peers on the same streams in one run."""
