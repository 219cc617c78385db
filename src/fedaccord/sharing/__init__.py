"""Who pays whom: what a group costs alone, and contracts that share the cost of a plan."""
