"""From what was measured to who should give how much: plans, and the pilots they need."""
