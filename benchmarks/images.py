"""Time to read an epoch of images from umix's cache, against a DataLoader that decodes and transforms image by image.

The DataLoader is a usual one: Pillow opens the file, crops a random box, resizes and mirrors it, and the image becomes a
normalised tensor. Both sides make the same training batches, without a net. "processor time" is that of one thread, which other
programs on the machine disturb little. "three epochs" is what umix needs with --no-cache ("streamed") over what it needs with the
cache, which is written first. With --wall-clock the wall-clock time of an epoch is also measured: the DataLoader has a persistent
worker process per core, umix decodes by a thread per core.

Run: python benchmarks/images.py [--root FOLDER --size 112]   (a folder in the layout of Waterbirds; else JPEGs are made up)
"""

import argparse
import math
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from measure import interleaved, ratio, write
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from umix import load_task
from umix.data.images.decoded_cache import cached
from umix.data.images.transforms import MEAN, STD
from umix.data.loader import batches

BATCH, IMAGES = 64, 256
PEER = "decoding every epoch"


class Decoding(Dataset):
    """Images that are decoded and augmented one by one, in every epoch."""

    def __init__(self, files: list[Path], size: int) -> None:
        self.files, self.size = files, size
        self.mean, self.std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> torch.Tensor:
        rng = np.random.default_rng(index)
        with Image.open(self.files[index]) as file:
            image = file.convert("RGB")
        for _ in range(10):
            area, ratio_ = rng.uniform(0.7, 1) * image.width * image.height, math.exp(rng.uniform(-0.2877, 0.2877))
            w, h = round(math.sqrt(area * ratio_)), round(math.sqrt(area / ratio_))
            if w <= image.width and h <= image.height:
                break
        else:
            w, h = image.size
        left, top = int(rng.integers(image.width - w + 1)), int(rng.integers(image.height - h + 1))
        image = image.resize((self.size, self.size), Image.Resampling.BILINEAR, (left, top, left + w, top + h))
        if rng.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        x = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float().div(255)
        return (x - self.mean) / self.std


def made_up(folder: Path, n: int, pixels: int) -> Path:
    """A folder in the layout of Waterbirds with ``n`` JPEGs, nearly all for training."""
    rng, lines = np.random.default_rng(0), ["img_id,img_filename,y,split,place,place_filename"]
    for i in range(n):
        coarse = Image.fromarray(rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)).resize((pixels, pixels))
        noisy = np.clip(np.asarray(coarse) + rng.normal(0, 12, (pixels, pixels, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(folder / f"{i}.jpg", quality=90)
        lines.append(f"{i},{i}.jpg,{i % 2},{max(0, i - n + 3)},{i // 2 % 2},x")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def measure(root: Path, size: int, cache: Path, repeats: int, wall_clock: bool) -> dict[str, object]:
    task = load_task("waterbirds", root, allow_subset=True, size=size)
    files = [task.splits["train"].x.folder / name for name in task.splits["train"].x.files][:IMAGES]
    torch.set_num_threads(1)
    begun = time.process_time()
    train = cached(task, cache).splits["train"]
    written = time.process_time() - begun
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(files)))

    def sliced(rng: np.random.Generator | None) -> None:
        for _ in batches(train, order, batch_size=BATCH, augment=rng):
            pass

    def streamed() -> None:
        for _ in batches(task.splits["train"], order, batch_size=BATCH, augment=np.random.default_rng(0)):
            pass

    def decoding(loader: DataLoader) -> None:
        for _ in loader:
            pass

    cores, dataset = os.cpu_count() or 1, Decoding(files, size)
    alone = DataLoader(dataset, BATCH, sampler=order.tolist())
    shared = DataLoader(dataset, BATCH, sampler=order.tolist(), num_workers=cores, persistent_workers=True)
    epoch = {
        "cache": lambda: sliced(np.random.default_rng(0)),
        "cache, not augmented": lambda: sliced(None),
    }
    sides = {PEER: lambda: decoding(alone), **epoch, "streamed": streamed}
    processor = interleaved(sides, repeats=repeats, clock=time.process_time)
    three = 3 * min(processor["streamed"]), written + 3 * min(processor["cache"])
    told_processor = {
        "size": size,
        "processor time": told(processor, len(files)),
        "three epochs, streamed / cache": round(three[0] / three[1], 2),
    }
    if not wall_clock:
        return told_processor
    torch.set_num_threads(cores)
    wall = interleaved({PEER: lambda: decoding(shared), **epoch, "streamed": streamed}, repeats=repeats)
    return {**told_processor, "wall clock": told(wall, len(files))}


def told(seconds: dict[str, list[float]], n: int) -> dict[str, object]:
    ratios = {f"{PEER} / {name}": ratio(seconds, PEER, name) for name in seconds if name in ("cache", "streamed")}
    return {"ms per image": {name: round(1000 * min(values) / n, 3) for name, values in seconds.items()}, **ratios}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path)
    parser.add_argument("--size", type=int, default=112)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--wall-clock", action="store_true")
    arguments = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for pixels in (224, 500):
            (place / str(pixels)).mkdir()
            root = made_up(place / str(pixels), IMAGES + 3, pixels)
            for size in (224, 64):
                results[f"made-up {pixels}-pixel JPEGs, size {size}"] = measure(
                    root, size, place / "cache", arguments.repeats, arguments.wall_clock
                )
        if arguments.root is not None:
            results[f"photographs of {arguments.root.name}"] = measure(
                arguments.root, arguments.size, place / "cache", arguments.repeats, arguments.wall_clock
            )
    write("images", {"results": results})


if __name__ == "__main__":
    main()
