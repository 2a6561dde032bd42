"""SpuCoMNIST from MNIST's four files: digits on a coloured background that gives their class away (Joshi et al. 2023).

Run: python examples/benchmarks/spuco_mnist.py FOLDER spuco_mnist.npz [--difficulty variance_high --strength 0.99]
     umix run spuco_mnist.npz --label digits --groups color --split split --net cnn

The classes are pairs of digits: 0-1, 2-3, 4-5, 6-7, 8-9. In training the background of ``strength`` of each class has the class's
own colour, and the rest shares the four other colours evenly. In validation, a stratified fifth of MNIST's training images, and in
test every class has all five colours evenly, so that there are 25 groups. ``difficulty`` says how easily the colour is learned:
its magnitude is the part of the image that is coloured (all of it, a corner of 4×4 or of 2×2 pixels), its variance is how far 49
coloured pixels are scattered (a corner of 7×7; anywhere in a corner of 14×14; anywhere). Only pixels that the digit leaves empty
are coloured.
"""

import argparse
import colorsys
import gzip
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

LABELS = np.array(["0-1", "2-3", "4-5", "6-7", "8-9"])
COLORS = np.array(["red", "lime", "green", "blue", "violet"])
SIDE, SCATTERED = 28, 49  # pixels
#: The corner of each difficulty in which pixels are coloured, and whether all of them are or 49 drawn for each image.
CORNERS = {
    "magnitude_large": (SIDE, False),
    "magnitude_medium": (4, False),
    "magnitude_small": (2, False),
    "variance_low": (7, False),
    "variance_medium": (14, True),
    "variance_high": (SIDE, True),
}


def read_idx(folder: Path, name: str, dimensions: int) -> np.ndarray:
    """The array in one of MNIST's files, packed with gzip or not, in ``folder`` or where torchvision puts it."""
    paths = [place / f"{name}{end}" for place in (folder, folder / "MNIST" / "raw") for end in ("", ".gz")]
    path = next((place for place in paths if place.is_file()), None)
    if path is None:
        raise SystemExit(f"{folder} must hold {name} or {name}.gz of MNIST.")
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    shape = np.frombuffer(content, ">u4", count=dimensions, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def colors(y: np.ndarray, strength: float | None, rng: np.random.Generator) -> np.ndarray:
    """A colour for each image: the class's own for a share ``strength`` of it, the others evenly; None: all evenly."""
    color = np.empty_like(y)
    for label in range(len(LABELS)):
        rows = rng.permutation(np.flatnonzero(y == label))
        agree = 0 if strength is None else int(strength * len(rows))
        others = [other for other in range(len(COLORS)) if strength is None or other != label]
        color[rows[:agree]] = label
        color[rows[agree:]] = np.resize(others, len(rows) - agree)
    return color


def painted(digits: np.ndarray, color: np.ndarray, difficulty: str, rng: np.random.Generator) -> np.ndarray:
    """The images uint8 [n, 3, 28, 28] of grey ``digits`` [n, 28, 28] with backgrounds of these colours."""
    corner, scattered = CORNERS[difficulty]
    mask = np.zeros((len(digits) if scattered else 1, SIDE, SIDE), dtype=bool)
    if scattered:
        for image in mask:
            points = rng.permutation(corner * corner)[:SCATTERED]
            image[points // corner, points % corner] = True
    else:
        mask[:, :corner, :corner] = True
    hues = [colorsys.hsv_to_rgb(number / len(COLORS), 1, 1) for number in range(len(COLORS))]
    palette = np.round(255 * np.array(hues)).astype(np.uint8)
    colored = (digits == 0) & mask
    return np.stack([np.where(colored, shade[color][:, None, None], digits) for shade in palette.T], axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write SpuCoMNIST as arrays that umix reads.")
    parser.add_argument("folder", type=Path, help="MNIST's four files")
    parser.add_argument("out", type=Path, help="the .npz file to write")
    parser.add_argument(
        "--strength", type=float, default=0.995, help="share of a class that has its own colour in train"
    )
    parser.add_argument("--difficulty", choices=CORNERS, default="magnitude_large")
    parser.add_argument(
        "--feature-noise", type=float, default=0.0, help="share of digits in train that are mostly erased"
    )
    parser.add_argument("--label-noise", type=float, default=0.0, help="share of images in train with a wrong class")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    read = {part: read_idx(options.folder, f"{part}-images-idx3-ubyte", 3) for part in ("train", "t10k")}
    digit = {part: read_idx(options.folder, f"{part}-labels-idx1-ubyte", 1) for part in ("train", "t10k")}
    train, val = train_test_split(
        np.arange(len(digit["train"])), test_size=0.2, stratify=digit["train"], random_state=options.seed
    )
    made: dict[str, list[np.ndarray]] = {"x": [], "digits": [], "color": [], "split": []}
    for split, part, rows in (("train", "train", train), ("val", "train", val), ("test", "t10k", slice(None))):
        images, y = read[part][rows].copy(), digit[part][rows].astype(np.int64) // 2
        color = colors(y, options.strength if split == "train" else None, rng)
        if split == "train":
            wrong = rng.permutation(len(y))[: int(options.label_noise * len(y))]
            y[wrong] = (y[wrong] + rng.integers(1, len(LABELS), len(wrong))) % len(LABELS)
            erased = rng.permutation(len(y))[: int(options.feature_noise * len(y))]
            images[erased] *= rng.standard_normal((len(erased), SIDE, SIDE)) > 0.25
        made["x"].append(painted(images, color, options.difficulty, rng))
        made["digits"].append(LABELS[y])
        made["color"].append(COLORS[color])
        made["split"].append(np.full(len(y), split))
    np.savez(options.out, **{name: np.concatenate(parts) for name, parts in made.items()})


if __name__ == "__main__":
    main()
