"""Folders of images: broken files, odd formats, false sizes, links that lead nowhere, and odd tables of them."""

import atexit
import io
import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

from hostile_cases.case import Case, Maker
from hostile_cases.mutations import OF_TEXT, odd_text, pick, some, spoiled
from hostile_cases.people import QUICK, predicts, train

_SMALL = ("--set", "task.size=8")
Pixels = np.ndarray
Format = Callable[[Pixels, np.random.Generator], tuple[str, bytes]]


def _saved(image: Image.Image, suffix: str, **options: object) -> tuple[str, bytes]:
    out = io.BytesIO()
    image.save(out, {".jpg": "JPEG", ".tif": "TIFF", ".pgm": "PPM"}.get(suffix, suffix[1:].upper()), **options)
    return suffix, out.getvalue()


def _usual(pixels: Pixels, rng: np.random.Generator) -> tuple[str, bytes]:
    return _saved(Image.fromarray(pixels), pick(rng, (".png", ".jpg", ".bmp", ".gif", ".webp", ".tif", ".ppm")))


def _odd_mode(pixels: Pixels, rng: np.random.Generator) -> tuple[str, bytes]:
    """An image with another kind of pixels."""
    mode, suffixes = pick(
        rng,
        (
            ("1", (".png", ".tif", ".bmp")),
            ("L", (".png", ".jpg", ".pgm")),
            ("LA", (".png",)),
            ("P", (".png", ".gif", ".bmp")),
            ("PA", (".tif",)),
            ("RGBA", (".png", ".webp", ".tif")),
            ("CMYK", (".jpg", ".tif")),
            ("YCbCr", (".jpg", ".tif")),
            ("LAB", (".tif",)),
            ("I;16", (".png", ".tif")),
            ("I", (".tif",)),
            ("F", (".tif",)),
        ),
    )
    if mode in ("I;16", "I", "F"):
        numbers = rng.normal(size=pixels.shape[:2]) * 10**6
        return _saved(Image.fromarray(numbers.astype({"I;16": "u2", "I": "i4", "F": "f4"}[mode])), pick(rng, suffixes))
    image = Image.fromarray(pixels)
    return _saved(image.convert("P").convert("PA") if mode == "PA" else image.convert(mode), pick(rng, suffixes))


def _animated(pixels: Pixels, rng: np.random.Generator) -> tuple[str, bytes]:
    frames = [Image.fromarray(np.roll(pixels, i, axis=0)) for i in range(3)]
    return _saved(frames[0], pick(rng, (".gif", ".webp", ".png", ".tif")), save_all=True, append_images=frames[1:])


def _odd_side(pixels: Pixels, rng: np.random.Generator) -> tuple[str, bytes]:
    """An image that is one pixel wide, or very long."""
    shape = pick(rng, ((1, 1, 3), (1, 3000, 3), (3000, 1, 3), (2, 2, 3)))
    return _saved(Image.fromarray(rng.integers(0, 255, shape, dtype=np.uint8)), pick(rng, (".png", ".jpg", ".gif")))


def _claims_a_size(pixels: Pixels, rng: np.random.Generator) -> tuple[str, bytes]:
    """A small file whose header says that the image is huge or empty."""
    w, h = pick(
        rng, ((60_000, 60_000), (10_000, 10_000), (0, 0), (0, 9), (2**31 - 1, 2**31 - 1), (65_535, 1), (14_000, 14_000))
    )
    kind = pick(rng, ("png", "bmp", "gif", "ppm", "tif"))
    if kind == "png":
        header = struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)
        chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b""))
        parts = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks]
        return ".png", b"\x89PNG\r\n\x1a\n" + b"".join(parts)
    if kind == "gif":
        return ".gif", b"GIF89a" + struct.pack(
            "<HH", w & 65535, h & 65535
        ) + b"\x80\x00\x00" + b"\xff" * 6 + b",\0\0\0\0" + (
            struct.pack("<HH", w & 65535, h & 65535) + b"\x00\x02\x02\x44\x01\x00;"
        )
    if kind == "ppm":
        return ".ppm", f"P6 {w} {h} 255\n".encode() + bytes(100)
    if kind == "bmp":
        size = struct.pack("<IiiHHIIiiII", 40, w, h, 1, 24, 0, 0, 0, 0, 0, 0)
        return ".bmp", b"BM" + struct.pack("<IHHI", 154, 0, 0, 54) + size + bytes(100)
    _, content = _saved(Image.fromarray(pixels), ".tif")
    return ".tif", content.replace(struct.pack("<H", pixels.shape[0]), struct.pack("<H", 60_000))


def _broken(pixels: Pixels, rng: np.random.Generator) -> tuple[str, bytes]:
    suffix, content = pick(rng, (_usual, _odd_mode, _animated))(pixels, rng)
    return suffix, spoiled(content, rng)[0]


def _other_suffix(pixels: Pixels, rng: np.random.Generator) -> tuple[str, bytes]:
    return pick(rng, (".png", ".JPG", ".jpeg", ".tiff", ".webp")), _usual(pixels, rng)[1]


def _no_image(pixels: Pixels, rng: np.random.Generator) -> tuple[str, bytes]:
    text = (
        b"",
        b"\x00",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%PDF-1.4",
        b"%!PS-Adobe-3.0 EPSF-3.0\n",
        b"id,y\n1,2\n",
    )
    return pick(rng, (".png", ".jpg", ".gif", ".tif", ".webp")), pick(rng, text)


FORMATS: tuple[Format, ...] = (
    _odd_mode,
    _animated,
    _odd_side,
    _claims_a_size,
    _broken,
    _broken,
    _broken,
    _other_suffix,
    _no_image,
)


def _pixels(rng: np.random.Generator) -> Pixels:
    height, width = rng.integers(6, 20, 2)
    return rng.integers(0, 255, (height, width, 3), dtype=np.uint8)


def _folder(folder: Path, rng: np.random.Generator, names: list[str], *, odd: int = 0) -> str:
    """Write images into folders of these ``names``, some of them odd, and tell what is odd about them."""
    said = []
    for i in range(int(rng.integers(16, 30))):
        place = folder / names[i % len(names)]
        place.mkdir(parents=True, exist_ok=True)
        made = pick(rng, FORMATS) if i < odd else _usual
        suffix, content = made(_pixels(rng), rng)
        (place / f"{i}{suffix}").write_bytes(content)
        said += [made.__name__.strip("_")] if i < odd else []
    return ", ".join(said)


def _reads(rng: np.random.Generator, name: str, flags: list[str]) -> list[str]:
    if rng.random() < 0.4:
        return ["doctor", name, *flags]
    cache = ["--no-cache"] if rng.random() < 0.3 else []
    return ["run", name, "erm", *flags, *QUICK, *_SMALL, "--net", "mlp", *cache]


@cache
def image_run() -> Path:
    """A finished run on images, made once in every process."""
    scratch = Path(tempfile.mkdtemp(prefix="hostile-run-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    _folder(scratch / "photos", np.random.default_rng(0), ["cat", "dog"])
    return train(scratch, str(scratch / "photos"), "--label-from", "folder", "--net", "mlp", *_SMALL)


def odd_images(folder: Path, rng: np.random.Generator) -> Case:
    """A folder for each class, with one to three odd images."""
    what = _folder(folder / "photos", rng, ["cat", "dog"], odd=int(rng.integers(1, 4)))
    if rng.random() < 0.4:
        new = "photos" if rng.random() < 0.5 else str(next((folder / "photos" / "cat").iterdir()).relative_to(folder))
        return predicts(image_run(), new, rng, folder, what=f"predict, {what}")
    return Case(what, _reads(rng, "photos", ["--label-from", "folder"]))


def odd_entries(folder: Path, rng: np.random.Generator) -> Case:
    """A folder with links, pipes, folders and odd names where images should be."""
    photos = folder / "photos"
    _folder(photos, rng, ["cat", "dog"])
    said = []
    for add in some(rng, _ENTRIES):
        (photos / "cat").mkdir(exist_ok=True)
        (photos / "dog").mkdir(exist_ok=True)
        add(photos, rng)
        said.append(add.__name__.strip("_"))
    if rng.random() < 0.3:
        return predicts(image_run(), "photos", rng, folder, what=f"predict, {', '.join(said)}")
    return Case(", ".join(said), _reads(rng, "photos", ["--label-from", "folder"]))


def _dangling(photos: Path, rng: np.random.Generator) -> None:
    (photos / "cat" / "gone.png").symlink_to("nowhere.png")


def _link_to_itself(photos: Path, rng: np.random.Generator) -> None:
    (photos / "cat" / "self.png").symlink_to("self.png")


def _loop(photos: Path, rng: np.random.Generator) -> None:
    (photos / "dog" / "up").symlink_to("..")
    (photos / "around").symlink_to("dog")


def _pipe(photos: Path, rng: np.random.Generator) -> None:
    os.mkfifo(photos / "cat" / "pipe.png")


def _device(photos: Path, rng: np.random.Generator) -> None:
    (photos / "cat" / "device.png").symlink_to(pick(rng, ("/dev/zero", "/dev/null", "/dev/tty", "/dev/stdin")))


def _folder_as_image(photos: Path, rng: np.random.Generator) -> None:
    (photos / "cat" / "folder.png").mkdir()


def _bytes_in_name(photos: Path, rng: np.random.Generator) -> None:
    place = pick(rng, (photos / "cat", photos / os.fsdecode(b"caf\xe9"), photos / "empty"))
    place.mkdir(exist_ok=True)
    (place / os.fsdecode(pick(rng, (b"\xff.png", b"ok.png", b"\xc3.jpg")))).write_bytes(
        _saved(Image.fromarray(_pixels(rng)), ".png")[1]
    )


def _text_in_name(photos: Path, rng: np.random.Generator) -> None:
    name = odd_text(rng).replace("/", "").replace("\x00", "").strip(".")[:60] or "x"
    place = pick(rng, (photos / "cat", photos / name))
    place.mkdir(exist_ok=True)
    (place / f"{name}.png").write_bytes(_saved(Image.fromarray(_pixels(rng)), ".png")[1])


def _many_classes(photos: Path, rng: np.random.Generator) -> None:
    for i in range(40):
        (photos / f"c{i}").mkdir()
        (photos / f"c{i}" / "1.png").write_bytes(_saved(Image.fromarray(_pixels(rng)), ".png")[1])


def _nothing(photos: Path, rng: np.random.Generator) -> None:
    shutil.rmtree(photos)
    photos.mkdir()
    for name in pick(rng, ((), ("cat",), ("cat", "dog"), ("train/cat", "test/cat"))):
        (photos / name).mkdir(parents=True)


def _one_class(photos: Path, rng: np.random.Generator) -> None:
    shutil.rmtree(photos / "dog", ignore_errors=True)


def _splits(photos: Path, rng: np.random.Generator) -> None:
    for split in some(rng, ("train", "val", "test")):
        shutil.copytree(
            photos / "cat",
            photos / split / "cat",
            symlinks=True,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("pipe*"),
        )


_ENTRIES = (
    _dangling,
    _link_to_itself,
    _loop,
    _pipe,
    _device,
    _folder_as_image,
    _bytes_in_name,
    _text_in_name,
    _many_classes,
    _nothing,
    _one_class,
    _splits,
)


def odd_listing(folder: Path, rng: np.random.Generator) -> Case:
    """A folder with a table of its images that is spoiled, or whose paths are odd."""
    photos = folder / "photos"
    _folder(photos, rng, ["in"])
    names = sorted(path.relative_to(photos).as_posix() for path in photos.rglob("*.*"))
    rows = [[name, ("no", "yes")[i % 2], ("a", "b")[i // 2 % 2]] for i, name in enumerate(names)]
    for _ in range(int(rng.integers(0, 3))):
        odd = (
            odd_text(rng),
            "/etc/passwd",
            "../photos",
            "in",
            names[0],
            "https://x.example/1.png",
            "/dev/zero",
            "~/1.png",
        )
        pick(rng, rows)[0] = pick(rng, odd)
    text = "\n".join(",".join(f'"{cell}"' for cell in row) for row in [["path", "kind", "place"], *rows])
    content = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.3:
        content = spoiled(content, rng, OF_TEXT)[0]
    (photos / "metadata.csv").write_bytes(content)
    flags = [
        "--label",
        "kind",
        *pick(rng, ((), ("--groups", "place"), ("--path", "place"), ("--metadata", "nowhere.csv"))),
    ]
    return Case("a table of images", _reads(rng, "photos", flags))


def odd_pattern(folder: Path, rng: np.random.Generator) -> Case:
    """Folders that name columns by a pattern, which may not fit them."""
    _folder(folder / "photos", rng, ["in/cat", "out/cat", "in/dog", "out/dog"])
    patterns = (
        "{place}/{kind}",
        "{kind}",
        "{a}/{kind}/{b}",
        "{place}{kind}",
        "{}/{kind}",
        "{kind",
        "(/{kind}",
        "{place}/{kind}\n",
        "*/{kind}",
        "",
    )
    pattern = pick(rng, (*patterns, odd_text(rng)))
    flags = ["--folders", pattern, "--label", "kind", *pick(rng, ((), ("--groups", "place"), ("--split", "place")))]
    return Case(f"pattern {pattern[:40]!r}", _reads(rng, "photos", flags))


MAKERS: tuple[Maker, ...] = (odd_images, odd_images, odd_entries, odd_entries, odd_listing, odd_pattern)
