"""EQ-FED: a plan found by training."""
