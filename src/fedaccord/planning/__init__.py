"""From what was measured to who should give how much: plans with room for chance."""
