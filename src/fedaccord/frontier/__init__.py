"""From a federation to plans: its pilots measured, and algorithms compared, each with its plan."""
