"""fedaccord."""
