"""The public names, each with the module that it is imported from when first asked for."""

from .controller import AlgorithmController as AlgorithmController
from .executor import SiteExecutor as SiteExecutor
from .recipe import AlgorithmRecipe as AlgorithmRecipe
from .results import RunResult as RunResult
from .results import load_run as load_run
