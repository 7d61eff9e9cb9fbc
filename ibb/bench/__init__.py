"""The benchmark suite: figures of this machine, as ratios to what it can do at all."""
