"""The errors fedaccord raises.

FedaccordError
├── InputError            the input is not a valid game, allocation or option
│   └── UnreachableError  a requirement that no amount of an agent's own data can meet
├── UnsolvedError         a Solution has no allocation to return
├── ExactnessError        the game is too large for an exact answer
├── OnlyPart              one part of the runs is made; a result needs all parts
└── MissingExtraError     an optional package is needed and not installed
"""


class FedaccordError(Exception):
    """Any error that fedaccord raises on purpose; its text is a sentence for the user."""


class InputError(FedaccordError, ValueError):
    """The input is not a valid game, allocation or option."""


class UnreachableError(InputError):
    """A requirement that no amount of the agent's own data can meet."""


class UnsolvedError(FedaccordError):
    """A Solution has no allocation to return."""


class ExactnessError(FedaccordError):
    """The game is too large for an exact answer."""


class OnlyPart(FedaccordError):
    """One part of the runs is made, as requested; a result needs all parts."""


class MissingExtraError(FedaccordError, ImportError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, extra: str) -> None:
        if extra == "train":
            # By far the largest, whichever of its packages was missed first.
            package = "torch, in the extra train (0.8 GB for CPUs, several GB with CUDA)"
        super().__init__(f"this needs {package}; install it with: pip install 'fedaccord[{extra}]'")
