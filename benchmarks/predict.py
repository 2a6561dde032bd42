"""Rows per second of `umix predict` against those of the bare net, and of a script that does the same by hand.

A CSV of 1,000,000 rows with 6 numbers and 8 texts of few values, as many as UCI Adult has. The bare net is called in a loop on the
ready matrix, in batches of the same size. The script reads the CSV with polars, encodes it, calls the net in the same loop and
writes CSV. umix does what `umix predict RUN new.csv -o - > out.csv` does, without starting Python: it also checks columns, counts
odd values and works in constant memory. With one thread for the net (the default here) reading runs beside it on a second core;
with --threads 2 the bare net has both cores for itself. Run: python benchmarks/predict.py [--rows 1000000] [--threads 1]
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import polars
import torch
from measure import interleaved, ratio, write

from umix import load_net
from umix.bench.predict import _MOST, reader, stream_predictions
from umix.bench.runs.execute import execute
from umix.bench.runs.record import RunRecord
from umix.bench.spec.run_spec import RunSpec
from umix.data.tables.preprocessing import TablePreprocessing

SIZES = (8, 16, 7, 14, 6, 5, 2, 41)


def table(n: int) -> polars.DataFrame:
    rng = np.random.default_rng(0)
    values = [np.array([f"Some-value-{v}" if v else "?" for v in range(size)]) for size in SIZES]
    return polars.DataFrame(
        {
            **{f"number {i}": rng.integers(10 ** (1 + i), size=n) for i in range(6)},
            **{f"text {i}": some[rng.integers(len(some), size=n)] for i, some in enumerate(values)},
            "y": np.array(["no", "yes"])[rng.integers(2, size=n)],
        }
    )


class ByHand:
    """What someone would write for this one table and this one net."""

    def __init__(self, record: RunRecord, net: torch.nn.Module, x: torch.Tensor) -> None:
        self.record, self.net, self.x = record, net, x
        self.columns = TablePreprocessing.load(record.directory).input_columns

    def bare(self, x: torch.Tensor | None = None) -> torch.Tensor:
        with torch.inference_mode():
            return torch.cat([self.net(part) for part in (self.x if x is None else x).split(_MOST)])

    def script(self, path: Path, out: Path) -> None:
        frame = polars.read_csv(path)
        x = np.zeros((len(frame), self.x.shape[1]), dtype=np.float32)
        rows, place = np.arange(len(frame)), 0
        for one in self.columns:
            if one.kind == "number":
                x[:, place] = ((frame[one.name].to_numpy() - one.mean[0]) / one.deviation[0]).clip(-10, 10)
            else:
                kinds = polars.Enum([*one.values, "?"])
                codes = frame[one.name].cast(kinds).to_physical().to_numpy().astype(np.int64)
                width = len(one.values) + one.gaps
                if width == 2:
                    x[:, place] = codes == 1
                else:
                    x[rows, place + codes] = 1.0
            place += 1 if one.kind == "number" or width == 2 else width
        probability = self.bare(torch.from_numpy(x)).softmax(dim=1).numpy()
        label = np.array(self.record.classes)[probability.argmax(axis=1)]
        columns = {f"p_{name}": probability[:, c] for c, name in enumerate(self.record.classes)}
        polars.DataFrame({"label": label, **columns}).write_csv(out)


def stream(record: RunRecord, path: Path, out: Path) -> None:
    with open(out, "wb") as file:
        stream_predictions(record, path, file)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    flags = parser.parse_args()
    torch.set_num_threads(flags.threads)
    with tempfile.TemporaryDirectory() as folder:
        train, new, out = (Path(folder) / name for name in ("train.csv", "new.csv", "out.csv"))
        table(5000).write_csv(train)
        table(flags.rows).drop("y").write_csv(new)
        settings = {"label": "y", "epochs": 1}
        record = execute(RunSpec(task=str(train), method="erm", settings=settings), out=Path(folder) / "runs")
        fitted, net = reader(record), load_net(record)
        x = torch.cat([block.x for block in fitted.blocks(new)])  # type: ignore[misc]
        hand = ByHand(record, net, x)
        hand.script(new, Path(folder) / "hand.csv")
        stream(record, new, out)
        ours, theirs = polars.read_csv(out)["p_yes"], polars.read_csv(Path(folder) / "hand.csv")["p_yes"]
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
        variants = {
            "umix": lambda: stream(record, new, out),
            "bare net": hand.bare,
            "script": lambda: hand.script(new, out),
        }
        seconds = interleaved(variants, repeats=flags.repeats)
        cpu = interleaved(variants, repeats=2, clock=time.process_time)
        write(
            "predict",
            {
                "setting": f"CSV, {flags.rows} rows, 6 numbers and 8 texts, {x.shape[1]} inputs, default net for tables; "
                f"{flags.threads} thread for the net, {os.cpu_count()} cores",
                "rows per second, umix / bare net": ratio(seconds, "bare net", "umix"),
                "rows per second, umix / script by hand": ratio(seconds, "script", "umix"),
                "seconds": {name: round(min(times), 2) for name, times in seconds.items()},
                "seconds of all cores": {name: round(min(times), 2) for name, times in cpu.items()},
                "load of the machine": [round(one, 1) for one in os.getloadavg()],
            },
        )


if __name__ == "__main__":
    main()
