"""Differences of shares that are seen in the same trials, under the name they are documented by."""

from fedaccord.federation.defection.intervals import compare_trials as compare_trials
