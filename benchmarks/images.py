"""How fast an epoch of images is sliced from the cache, against a DataLoader that decodes and transforms image by image.

The peer is written as people write it: Pillow opens the file, cuts a random box, resizes and mirrors it; a tensor is made of it
and normalised. Both sides make the same training batches in one thread, without a net, and processor time is compared: what
several workers or threads share out among the cores.

Run: python benchmarks/images.py [--root FOLDER --size 112]   (a folder in the layout of Waterbirds; else JPEGs are made up)
"""

import argparse
import math
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from measure import interleaved, ratio, write
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from umix import load_task
from umix.data.image_cache import cached
from umix.data.loader import batches
from umix.data.transforms import MEAN, STD

BATCH, IMAGES = 64, 512


class Decoding(Dataset):
    """Images decoded and augmented one by one, at every visit."""

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


def measure(root: Path, size: int, cache: Path, repeats: int) -> dict[str, object]:
    task = load_task("waterbirds", root, allow_subset=True, size=size)
    files = [task.splits["train"].x.folder / name for name in task.splits["train"].x.files][:IMAGES]
    train = cached(task, cache).splits["train"]
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(files)))

    def sliced(rng: np.random.Generator | None) -> None:
        for _ in batches(train, order, batch_size=BATCH, augment=rng):
            pass

    def decoding() -> None:
        for _ in DataLoader(Decoding(files, size), BATCH, sampler=order.tolist()):
            pass

    variants = {
        "decoding every epoch": decoding,
        "cache": lambda: sliced(np.random.default_rng(0)),
        "cache, not augmented": lambda: sliced(None),
    }
    seconds = interleaved(variants, repeats=repeats, clock=time.process_time)
    return {
        "size": size,
        "ms per image": {name: round(1000 * min(values) / len(files), 3) for name, values in seconds.items()},
        "decoding every epoch / cache": ratio(seconds, "decoding every epoch", "cache"),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path)
    parser.add_argument("--size", type=int, default=112)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for pixels in (224, 500):
            (place / str(pixels)).mkdir()
            root = made_up(place / str(pixels), IMAGES + 3, pixels)
            results[f"made-up {pixels}-pixel JPEGs"] = measure(root, 224, place / "cache", asked.repeats)
        if asked.root is not None:
            results[f"photographs of {asked.root.name}"] = measure(
                asked.root, asked.size, place / "cache", asked.repeats
            )
    write("images", {"results": results})


if __name__ == "__main__":
    main()
