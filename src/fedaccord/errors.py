"""The errors fedaccord raises.

FedaccordError
├── InputError            what was given is not a game, an allocation or an option
│   └── UnreachableError  a requirement that no amount of an agent's own data can meet
├── UnsolvedError         a Solution without an allocation was asked for one
├── ExactnessError        an exact answer was asked of a game too large to give one
└── MissingExtraError     an optional package is needed and not installed
"""


class FedaccordError(Exception):
    """Any error that fedaccord raises on purpose; its text is a sentence for the user."""


class InputError(FedaccordError, ValueError):
    """What was given is not a game, an allocation or an option."""


class UnreachableError(InputError):
    """A requirement that no amount of the agent's own data can meet."""


class UnsolvedError(FedaccordError):
    """A Solution without an allocation was asked for one."""


class ExactnessError(FedaccordError):
    """An exact answer was asked of a game too large to give one."""


class MissingExtraError(FedaccordError, ImportError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is needed for this; install it with: pip install 'fedaccord[{extra}]'"
        )
