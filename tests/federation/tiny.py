"""Configs of digits in small, made in a fraction of a second."""

from collections.abc import Sequence

TINY = """
[pools]
pretraining = 100
validation = 60
[difficulty]
batches = 5
holdout = 20
[pretraining]
batches = 2
[agents]
mixtures = [1, 0]
points = 40
hard = [50, 100]
easy = [0, 50]
"""


def tiny_audit(
    *, trials: int, requirement: float = 0.15, names: Sequence[str] = ("north", "south")
) -> str:
    """Give a config with a network that knows a little, and an audit of a few rounds."""
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"""{TINY.replace("batches = 2", "batches = 8")}
names = [{quoted}]
requirement = {requirement}
[training]
rounds = 4
batch_size = 8
learning_rate = 0.01
evaluate_every = 2
[audit]
trials = {trials}
levels = [1, 0.5]
"""
