"""A run whose clients are elsewhere: what is said to them, and what follows from their replies.

Flower and NVFlare only carry the messages. Nothing here imports either.
"""
