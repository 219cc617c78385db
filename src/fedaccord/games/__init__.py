"""What agents want: one utility model per module."""
