"""How much each should give: one solution concept per module."""
