"""Compiled functions on machines where nothing can be kept of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import caching

from fedaccord.equilibria.compiled import compile_loop

MODULES = ("linear", "coverage")


def double(x: float) -> float:
    return 2 * x


def test_a_function_is_compiled_where_no_folder_can_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kind in ("CompileResultCacheImpl", "CodeLibraryCacheImpl"):
        monkeypatch.setattr(getattr(caching, kind), "_locator_classes", [])
    with pytest.raises(RuntimeError, match="no locator"):
        caching.FunctionCache(double)
    assert compile_loop(double)(21.0) == 42.0


@pytest.mark.parametrize("module", MODULES)
def test_every_compiled_module_is_imported_there(module: str) -> None:
    start = (
        "from numba.core import caching; caching.CacheImpl._locator_classes = []; "
        f"import fedaccord.equilibria.{module}.kernels"
    )
    source = str(Path(__file__).parents[2] / "src")
    environment = {**os.environ, "PYTHONPATH": source}
    subprocess.run([sys.executable, "-c", start], env=environment, check=True)
