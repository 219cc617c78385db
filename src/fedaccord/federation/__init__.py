"""What happens when they train: clients, algorithms, histories and the audit of defection.

This package imports nothing by itself, so that `allotment` and `algorithms` can be used where
torch is not installed.
"""
