"""What limits the native block: arithmetic or memory.

    python benchmarks/roofline.py [--quick]

On one core, in turn: the arithmetic peak (a product of matrices), how fast a core reads an array of
the linear layer's size and one too large for any cache, and the block's forward and backward pass
on a batch of 64. Operations are those that the block does, which leaves zeros out: the images, the
weights and the gradient are a training's, and what is not zero is counted. Bytes are those of
arrays that do not stay in a core's own cache of about 2 MB. The limit of a pass is the smaller of
the peak and its operations per byte times the bandwidth at which a core reads the layer. Where
torch multiplies with vectors of 16 floats, the block, which has vectors of 8, can reach half of the
peak. It replaces benchmarks/results/roofline.json.
"""

from __future__ import annotations

import os

# One core. Must be set before numpy is imported.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import statistics
import sys
from pathlib import Path
from typing import Any

import torch
import training
from measuring import compare, interleaved, machine, measure_rows, parse_rows, write_ratio
from rich.table import Table
from torch.nn import functional

from fedaccord.federation.models import fused
from fedaccord.federation.models.networks import PaperNet

RESULTS = Path(__file__).parent / "results" / "roofline.json"
SEED, BATCH, CLASSES, DROP = 20214, 64, 47, 64
FLOAT = 4
# Of the network: sides of the images, after the convolutions and of the tiles; channels.
INNER, CHANNELS1, CHANNELS2, TAPS = 26, 32, 64, 9
TILES, FREQUENCIES, PATCH, TILE = 36, 36, 6, 4
# Additions and products of Winograd's transforms of six numbers, to frequencies and from them.
TO, FROM = 19, 13
CONVOLVE1 = 2 * INNER**2 * CHANNELS1 * TAPS
CONVOLVE2 = (
    CHANNELS1 * TO * PATCH * (INNER + TILES)
    + 2 * FREQUENCIES * TILES * CHANNELS1 * CHANNELS2
    + TILES * CHANNELS2 * FROM * (PATCH + TILE)
)
# An array of so many floats is too large for any cache.
LARGE = 2**28


def make_batch() -> dict[str, Any]:
    """Take a batch through the paper's network, with dropout, from pre-trained weights."""
    torch.manual_seed(SEED)
    model = PaperNet(CLASSES)
    model.load_state_dict(training.federation("auto", "pre-trained").start().state_dict())
    pixels, labels, _ = training.images()
    images = torch.from_numpy(pixels[:BATCH]).contiguous()
    layers = (model.conv1, model.conv2, model.fc1)
    weights = [weight for layer in layers for weight in layer.parameters()]
    drawn = torch.randint(fused.BYTES, (BATCH, fused.FEATURES), dtype=torch.uint8)
    hidden = fused.hidden_layer(images, weights, drawn, DROP)
    scores = model.fc2(model.dropout2(hidden))
    loss = functional.cross_entropy(scores, torch.from_numpy(labels[:BATCH]))
    gradient = torch.autograd.grad(loss, hidden, retain_graph=True)[0]
    kept = [weight.detach() for weight in weights]
    _, features, winners = fused._forward(images, drawn, DROP, kept, for_backward=True)
    assert winners is not None
    return {
        "images": images,
        "weights": weights,
        "drawn": drawn,
        "hidden": hidden,
        "gradient": gradient,
        "live features": int((features != 0).sum()),
        "terms": int(((hidden > 0) & (gradient != 0)).sum()),
        "arrivals": sum(int(word).bit_count() for word in _unsigned(winners)),
    }


def _unsigned(winners: torch.Tensor) -> list[int]:
    return [word % 2**64 for word in winners.ravel().tolist()]


def count(batch: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Count the operations of each pass, and the bytes of arrays beyond a core's own cache."""
    row, layer = FLOAT * fused.FEATURES, FLOAT * fused.FEATURES * fused.UNITS
    marks = fused.WINDOWS * fused.PLACES * 8
    pixels = FLOAT * fused.SIDE**2
    linear = 2 * fused.UNITS * batch["live features"]
    forward = BATCH * (CONVOLVE1 + CONVOLVE2) + linear
    # Features are written and read again; the dropout's bytes are a quarter of them.
    forward_bytes = BATCH * (pixels + 2 * row + row / FLOAT + marks) + layer
    # Each term is a row of features in one product, and of weights in the other. The features of a
    # batch nearly fit the core's own cache, and the weights do not.
    terms, arrivals = batch["terms"], batch["arrivals"]
    backward = 2 * BATCH * CONVOLVE1 + 4 * fused.FEATURES * terms
    backward += 4 * TAPS * CHANNELS1 * arrivals
    backward_bytes = row * terms + layer + BATCH * (row + pixels + marks)
    return {"forward": (forward, forward_bytes), "backward": (backward, backward_bytes)}


def rows_roofline(quick: bool) -> list[dict[str, Any]]:
    """Compare each pass with what arithmetic and memory allow."""
    batch = make_batch()
    images, weights, drawn = batch["images"], batch["weights"], batch["drawn"]
    layer = torch.rand(fused.FEATURES * fused.UNITS)
    large = torch.rand(LARGE // 64 if quick else LARGE)
    times = 2 if quick else 10

    def repeat(task: Any) -> Any:
        return lambda: [task() for _ in range(times)]

    peaks: list[float] = []
    tasks = {
        "sgemm": lambda: peaks.append(training.sgemm_peak()),
        "layer": repeat(lambda: torch.dot(layer, layer)),
        "large": lambda: torch.dot(large, large),
        "forward": repeat(lambda: fused.hidden_layer(images, weights, drawn, DROP)),
        "backward": repeat(
            lambda: torch.autograd.grad(
                batch["hidden"], weights, batch["gradient"], retain_graph=True
            )
        ),
    }
    interleaved(tasks, 1)
    peaks.clear()
    seconds = interleaved(tasks, 2 if quick else 9)
    bandwidths = {
        "layer": [times * FLOAT * layer.numel() / s for s in seconds["layer"]],
        "large": [FLOAT * large.numel() / s for s in seconds["large"]],
    }
    return [
        _row(name, *counted, [s / times for s in seconds[name]], peaks, bandwidths)
        for name, counted in count(batch).items()
    ]


def _row(
    name: str,
    operations: float,
    moved: float,
    seconds: list[float],
    peaks: list[float],
    bandwidths: dict[str, list[float]],
) -> dict[str, Any]:
    reached = [operations / s for s in seconds]
    allowed = [operations / moved * bandwidth for bandwidth in bandwidths["layer"]]
    peak, memory = statistics.median(peaks), statistics.median(allowed)
    limits = [min(pair) for pair in zip(peaks, allowed, strict=True)]
    return {
        "row": f"{name}, {BATCH} images",
        "seconds": statistics.median(seconds),
        "operations": operations,
        "bytes": moved,
        "operations_per_byte": operations / moved,
        "gflops": statistics.median(reached) / 1e9,
        "sgemm_gflops": peak / 1e9,
        "gigabytes_per_second_of_layer": statistics.median(bandwidths["layer"]) / 1e9,
        "gigabytes_per_second_of_large": statistics.median(bandwidths["large"]) / 1e9,
        "memory_allows_gflops": memory / 1e9,
        "limit": "arithmetic" if peak < memory else "memory",
        **compare(reached, limits, "of_limit"),
        **compare(reached, peaks, "of_peak"),
        **compare(reached, allowed, "of_memory_limit"),
        "all": {"seconds": seconds, "sgemm": peaks, **bandwidths},
    }


def table(rows: list[dict[str, Any]]) -> Table:
    """Lay the rows out for a terminal."""
    result = Table(
        "pass", "GFLOP/s", "sgemm", "FLOP/byte", "memory allows", "limit", "of it [min, max]"
    )
    for row in rows:
        keys = ("gflops", "sgemm_gflops", "operations_per_byte", "memory_allows_gflops")
        cells = [f"{row[key]:.3g}" for key in keys]
        result.add_row(row["row"], *cells, row["limit"], write_ratio(row, "of_limit"))
    return result


def described_machine() -> dict[str, Any]:
    """Say what ran this, with which vector instructions torch multiplies."""
    vectors = torch.backends.cpu.get_cpu_capability()
    return {**machine("torch"), "sgemm_uses": vectors, "images": training.images()[2]}


def main() -> None:
    """Measure, print and write the file."""
    rows = {"passes": rows_roofline}
    chosen = parse_rows(str(__doc__).splitlines()[0], rows).parse_args()
    torch.set_num_threads(1)
    if (reason := fused.why_not()) is not None:
        sys.exit(reason)
    measure_rows(rows, chosen, results=RESULTS, seed=SEED, machine=described_machine, table=table)


if __name__ == "__main__":
    main()
