"""Games from the paper, and small ones, each with its source and its known answers."""

from fedaccord.games.catalog.entries import CHOICES, ENTRIES, Entry, answers, build

__all__ = ["CHOICES", "ENTRIES", "Entry", "answers", "build"]
