"""The training trajectory: was example i predicted correctly in epoch t?

It holds two bits per example and epoch: was the example predicted correctly, and was it visited at
all? To ask for a prediction that was never made is an error; it does not count as wrong. ``val``
and ``test`` are trajectories of those splits, if they were recorded; this costs an evaluation pass
after every epoch. It works in any training loop::

    trajectory = Trajectory(len(y))
    for epoch in range(epochs):
        for x, y, index in loader:
            logits = net(x)
            trajectory.see(index, logits, y)
            ...
        trajectory.end_epoch()
    weights = trajectory.weights(eta=3)

In several processes each of which sees some of the examples, call ``trajectory.gather()`` before ``end_epoch()``.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import torch
from torch import Tensor, distributed

from umix.core.forgetting import forgetting_events
from umix.core.weights import importance_weights, normalized, uncertainty
from umix.errors import UserError
from umix.store import read_tensors, reading, write_tensors

_PENDING = 2**14  # examples kept back before they become bits: bounds the memory, with few transfers from the device
_BLOCK = 2**16  # examples unpacked at a time; a multiple of 8


@final
class Trajectory:
    """Which of ``n`` examples were predicted correctly in which epoch.

    Args:
        n: number of training examples.
        fingerprint: that of their split, which is stored with the trajectory; your own loop needs none.
        val: trajectory of the validation examples, if they are recorded too.
        test: likewise of the test examples.

    """

    def __init__(
        self, n: int, *, fingerprint: str = "", val: "Trajectory | None" = None, test: "Trajectory | None" = None
    ) -> None:
        if not isinstance(n, int | np.integer) or n < 0:
            got = n if isinstance(n, int | float) else type(n).__name__
            raise UserError(
                f"Trajectory must be given the number of examples, got {got}; write Trajectory(len(dataset))."
            )
        self.n = int(n)
        self.fingerprint = fingerprint
        self.val = val
        self.test = test
        self._correct: list[np.ndarray] = []  # one row of packed bits per finished epoch
        self._visited: list[np.ndarray] = []
        self._open: tuple[np.ndarray, np.ndarray] | None = None
        self._pending: list[tuple[Tensor, Tensor]] = []  # index and hit of batches, on their devices
        self._pending_size = 0

    @property
    def epochs(self) -> int:
        """The number of finished epochs."""
        return len(self._correct)

    def see(self, index: Tensor, logits: Tensor, y: Tensor) -> None:
        """Record the predictions of a batch in the current epoch, from its logits [batch, classes].

        For an example that is seen again the last one counts. The tensors may be changed and used again afterwards.
        """
        if (
            index.dim() != 1
            or y.shape != index.shape
            or logits.dim() != 2
            or logits.shape[1] < 2
            or len(logits) != len(y)
        ):
            raise UserError(
                f"Trajectory.see must be given indices [batch], logits [batch, classes] of two classes or more and labels [batch], "
                f"got {list(logits.shape)} for indices {list(index.shape)} and labels {list(y.shape)}; of one logit z per "
                "example make two, 0 and z."
            )
        self._pending.append((index.clone(), logits.argmax(dim=1) == y))
        self._pending_size += len(index)
        if self._pending_size >= _PENDING:
            self._flush()

    def see_all(self, correct: Tensor) -> None:
        """Record the current epoch from an evaluation pass over all examples, bool [n]."""
        self._flush()
        self._open = (np.packbits(correct.cpu().numpy()), np.packbits(np.ones(self.n, dtype=bool)))

    def end_epoch(self) -> None:
        """End the current epoch; examples that were not seen in it count as not visited."""
        self._flush()
        correct, visited = self._row()
        self._correct.append(correct)
        self._visited.append(visited)
        self._open = None

    def gather(self) -> None:
        """In several processes (``torch.distributed``): what each has seen in the current epoch counts in all of them.

        An example that several have seen was predicted correctly if all of them did. In one process this does nothing.
        """
        if not distributed.is_available() or not distributed.is_initialized() or distributed.get_world_size() == 1:
            return
        self._flush()
        correct, visited = (np.unpackbits(bits, count=self.n) for bits in self._row())
        device = torch.device("cuda" if distributed.get_backend() == "nccl" else "cpu")
        found = torch.from_numpy(np.stack([visited, visited & ~correct])).to(device)  # seen, and seen and wrong
        distributed.all_reduce(found, op=distributed.ReduceOp.MAX)
        seen, wrong = found.cpu().numpy()
        self._open = (np.packbits(seen & ~wrong), np.packbits(seen))

    def _row(self) -> tuple[np.ndarray, np.ndarray]:
        if self._open is None:
            width = -(-self.n // 8)
            self._open = (np.zeros(width, dtype=np.uint8), np.zeros(width, dtype=np.uint8))
        return self._open

    def _flush(self) -> None:
        """Turn what is pending into bits, with one transfer from the device for many batches."""
        if not self._pending:
            return
        where, hit = (torch.cat(part).cpu().numpy() for part in zip(*self._pending, strict=True))
        self._pending, self._pending_size = [], 0
        # np.unique finds first occurrences: in reversed order these are the last visits.
        where, last = np.unique(where[::-1], return_index=True)
        if len(where) and not 0 <= where[0] <= where[-1] < self.n:
            raise UserError(f"Trajectory.see must be given indices in 0..{self.n - 1}, got {where[0]}..{where[-1]}.")
        hit, byte, bit = hit[::-1][last], where >> 3, (128 >> (where & 7)).astype(np.uint8)
        correct, visited = self._row()
        np.bitwise_or.at(visited, byte, bit)
        np.bitwise_or.at(correct, byte, bit)
        np.bitwise_xor.at(correct, byte[~hit], bit[~hit])

    def window(self, *, start: int, length: int) -> Iterator[Tensor]:
        """The window in blocks of examples, [block, length]: 1 correct, 0 wrong, NaN not visited."""
        correct, visited = (
            np.stack(self._correct[start : start + length]),
            np.stack(self._visited[start : start + length]),
        )
        for first in range(0, self.n, _BLOCK):
            columns, size = slice(first // 8, (first + _BLOCK) // 8), min(_BLOCK, self.n - first)
            hit = np.unpackbits(correct[:, columns], axis=1, count=size)
            seen = np.unpackbits(visited[:, columns], axis=1, count=size)
            yield torch.from_numpy(np.where(seen, hit, np.float32("nan")).astype(np.float32).T)

    def uncertainty(self, *, start: int, length: int) -> Tensor:
        """Share of the epochs ``start … start+length-1`` in which each example was wrong, [n] (UMIX eq. 6).

        Every example must have been visited in every epoch of the window.
        """
        if not self.epochs:
            raise UserError(
                "A trajectory must have an epoch that has ended, got none; train a whole one, and end it by end_epoch()."
            )
        missing = {epoch: self._n_missing(epoch) for epoch in range(start, start + length)}
        gaps = ", ".join(f"epoch {epoch}: {count} of {self.n}" for epoch, count in missing.items() if count)
        if start < 0 or length < 1 or gaps:
            raise UserError(
                f"The window start={start}, length={length} must be recorded for every example, but of the epochs "
                f"0..{self.epochs - 1}, which have ended, predictions are missing ({gaps or 'no epoch asked for'}); choose a "
                "window inside them, load all examples (drop_last=False), and in several processes call gather()."
            )
        parts = [uncertainty(block, start=0, length=length) for block in self.window(start=start, length=length)]
        return torch.cat(parts) if parts else torch.zeros(0)

    def weights(
        self, *, eta: float, c: float = 1.0, start: int = 0, length: int | None = None, normalize: bool = True
    ) -> Tensor:
        """The weight eta·u + c of every example, [n] (UMIX eq. 7).

        The window has ``length`` epochs from ``start`` on, by default all that were recorded. With ``normalize`` weights are
        scaled to mean 1, so that eta does not change the learning rate; without it they are as the paper writes them.
        """
        if not (0 <= eta < float("inf") and 0 <= c < float("inf")):
            raise UserError(f"eta and c must be numbers of at least 0, got eta={eta} and c={c}.")
        u = self.uncertainty(start=start, length=self.epochs - start if length is None else length)
        weights = importance_weights(u, eta=eta, c=c)
        return normalized(weights) if normalize else weights

    def val_uncertainty(self, *, start: int, length: int) -> Tensor:
        """The same share for every validation example, [n_val]."""
        return self._known_val().uncertainty(start=start, length=length)

    def rates(self) -> list[float]:
        """Share of all examples that were predicted correctly, for every epoch."""
        return [int(np.unpackbits(row, count=self.n).sum()) / max(1, self.n) for row in self._correct]

    def val_rates(self) -> list[float]:
        """The share of validation examples that were predicted correctly, for every epoch."""
        return self._known_val().rates()

    def _known_val(self) -> "Trajectory":
        if self.val is None:
            raise UserError("This trajectory must hold validation examples, but none were recorded; record it again.")
        return self.val

    def test_uncertainty(self, *, start: int, length: int) -> Tensor | None:
        """The same share for every test example, [n_test], for reports.

        None if test examples were not recorded.
        """
        return None if self.test is None else self.test.uncertainty(start=start, length=length)

    def _n_missing(self, epoch: int) -> int:
        if not 0 <= epoch < self.epochs:
            return self.n
        return self.n - int(np.unpackbits(self._visited[epoch], count=self.n).sum())

    def forgetting(self) -> Tensor:
        """Forgetting events of every example, [n]: visits at which it was wrong after it had been right."""
        rows = zip(self._correct, self._visited, strict=True)
        epochs = ((self._unpacked(correct), self._unpacked(visited)) for correct, visited in rows)
        return torch.from_numpy(forgetting_events(epochs, n=self.n))

    def _unpacked(self, bits: np.ndarray) -> np.ndarray:
        return np.unpackbits(bits, count=self.n).astype(bool)

    def truncate(self, epochs: int) -> None:
        """Delete all epochs from ``epochs`` on: they were recorded after the checkpoint from which training resumes."""
        del self._correct[epochs:], self._visited[epochs:]
        for part in (self.val, self.test):
            if part is not None:
                part.truncate(epochs)

    def save(self, path: str | Path) -> None:
        """Write the finished epochs to ``path``, atomically."""
        known = {"": self, "val/": self.val, "test/": self.test}
        parts = {prefix: part for prefix, part in known.items() if part is not None}
        bits = {f"{prefix}{name}": row for prefix, part in parts.items() for name, row in part._bits().items()}
        facts = {f"{prefix}n": str(part.n) for prefix, part in parts.items()}
        facts |= {f"{prefix}fingerprint": part.fingerprint for prefix, part in parts.items()}
        write_tensors(Path(path), bits, {"kind": "trajectory", **facts})

    def _bits(self) -> dict[str, Tensor]:
        width = -(-self.n // 8)
        return {
            name: torch.from_numpy(np.stack(rows) if rows else np.zeros((0, width), dtype=np.uint8))
            for name, rows in (("correct", self._correct), ("visited", self._visited))
        }

    def state_dict(self) -> dict[str, Any]:
        """All that was seen, also in an epoch that has not ended: tensors, numbers and texts."""
        self._flush()
        parts = {name: part.state_dict() for name, part in (("val", self.val), ("test", self.test)) if part is not None}
        opened = {} if self._open is None else {"open": torch.from_numpy(np.stack(self._open))}
        return {"n": self.n, "fingerprint": self.fingerprint, **self._bits(), **opened, **parts}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Self:
        """A trajectory that goes on where ``state_dict`` was taken."""
        trajectory = cls(state["n"])
        trajectory.load_state_dict(state)
        return trajectory

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was taken; the state of other examples raises and changes nothing."""
        if state.get("n") != self.n:
            raise UserError(f"The state of a trajectory must be that of {self.n} examples, got {state.get('n')}.")
        fingerprint = state.get("fingerprint", "")
        if self.fingerprint and fingerprint and fingerprint != self.fingerprint:
            raise UserError(
                f"The state of a trajectory must be that of the data {self.fingerprint}, got one of {fingerprint}; its examples "
                "are others or in another order."
            )
        self._pending, self._pending_size = [], 0
        self._correct, self._visited = (list(state[name].cpu().numpy().copy()) for name in ("correct", "visited"))
        self._open = tuple(state["open"].cpu().numpy().copy()) if "open" in state else None
        self.fingerprint = self.fingerprint or fingerprint
        self.val, self.test = (
            Trajectory.from_state_dict(state[name]) if name in state else part
            for name, part in (("val", self.val), ("test", self.test))
        )

    @classmethod
    def load(cls, path: str | Path, *, fingerprint: str | None = None) -> Self:
        """The trajectory at ``path``; raises if it was recorded on data with another ``fingerprint``."""
        tensors, metadata = read_tensors(Path(path), kind="trajectory")
        of = metadata.get("fingerprint", "")
        if fingerprint is not None and of != fingerprint:
            raise UserError(
                f"{path} must be a trajectory of the data {fingerprint}, got one of {of or 'unnamed data'}; "
                "its examples are others or in another order."
            )
        with reading(Path(path), "trajectory"):
            trajectory = cls._part("", tensors, metadata)
            if "val/n" in metadata:
                trajectory.val = cls._part("val/", tensors, metadata)
            if "test/n" in metadata:
                trajectory.test = cls._part("test/", tensors, metadata)
        return trajectory

    @classmethod
    def _part(cls, prefix: str, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Self:
        part = cls(int(metadata[f"{prefix}n"]), fingerprint=metadata[f"{prefix}fingerprint"])
        part._correct, part._visited = (list(tensors[f"{prefix}{name}"].numpy()) for name in ("correct", "visited"))
        return part
