"""The server: a strategy by the run's settings, with its state after each round in files."""

import json
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp

from fedaccord.federation import flower

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    folder = Path(str(context.run_config["folder"]))
    settings = json.loads((folder / "settings.json").read_text())
    with np.load(folder / "start.npz") as file:
        start = ArrayRecord({name: Array(file[name]) for name in file})
    kind = recording(getattr(flower, settings["strategy"]), folder)
    strategy = kind(**settings["options"], history_file=folder / "history.csv")
    strategy.start(grid, start, num_rounds=settings["rounds"])
    made = {
        "history": strategy.history.to_dict(),
        "remarks": [[r.round, r.client, r.text] for r in strategy.remarks],
        "stopped": strategy.stopped,
        "checkpoints": list(strategy.checkpoints),
    }
    (folder / "made.json").write_text(json.dumps(made))


def recording(kind: type, folder: Path) -> type:
    """Let a strategy write its weights and the model after each round."""

    class Recording(kind):
        def aggregate_evaluate(self, server_round, replies):
            found = super().aggregate_evaluate(server_round, replies)
            np.savez(folder / f"model-{server_round}.npz", **self.history.weights)
            if np.ndim(self._run.book.state) == 1:
                weights = {name: float(weight) for name, weight in self.weights.items()}
                (folder / f"weights-{server_round}.json").write_text(json.dumps(weights))
            return found

    return Recording
