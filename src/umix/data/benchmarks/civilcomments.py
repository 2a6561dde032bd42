"""CivilComments: comments of readers, toxic or not (Borkan et al. 2019), as WILDS divides them (Koh et al. 2021).

The label is ``toxicity`` ≥ 0.5. Eight identities are mentioned or not (≥ 0.5); a comment may mention several or none. Evaluation
has 16 overlapping groups, for each identity the comments that mention it, not toxic and toxic, in the order of ``IDENTITIES``; the
worst of them is the headline, and the average is over all comments, with an identity or without. Methods that train with groups
need disjoint ones, which are declared: label × whether black is mentioned (as in WILDS), or × whether any identity is.
"""

from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from umix.data.benchmarks.image_benchmark import NOT_USED, SPLITS, archive_folder, read_csv, require_published
from umix.data.checks.problems import FolderCheck, Problems
from umix.data.groups import Groups
from umix.data.task import CheckedSource, Split, Task
from umix.data.texts.text_reader import text_inputs
from umix.data.texts.tokenizer import tokenizer_hash, tokenizer_of
from umix.errors import UserError

FOLDER, TABLE = "civilcomments_v1.0", "all_data_with_identities.csv"
LABELS = ("not toxic", "toxic")
IDENTITIES = ("male", "female", "LGBTQ", "christian", "muslim", "other_religions", "black", "white")
#: Names of the evaluation groups: identity by identity, first what is not toxic.
GROUPS = tuple(f"{label}, {identity}" for identity in IDENTITIES for label in LABELS)
PUBLISHED = {"train": 269_038, "val": 45_180, "test": 133_782}
_COLUMNS = ("comment_text", "split", "toxicity", *IDENTITIES)


@final
class CivilComments(CheckedSource):
    """Comments of readers, label = toxic, with 16 overlapping groups of identities (local folder)."""

    name: ClassVar[str] = "civilcomments"
    default_net: ClassVar[str] = "mlp"

    allow_subset: bool = Field(False, description="accept other counts than the published ones")
    training_groups: Literal["black", "any_identity"] = Field(
        "black", description="disjoint groups of group-aware methods: label × this being mentioned"
    )
    tokenizer: str | None = Field(
        None, exclude=True, description="folder or hub name of the tokenizer; else that of an hf: net; else word counts"
    )
    tokens: int = Field(300, ge=2, le=2**20, description="longest comment in tokens; what is beyond is cut")

    @cached_property
    def content(self) -> str:
        """The hash of the tokenizer; empty without one."""
        return tokenizer_hash(self.tokenizer) if self.tokenizer else ""

    @classmethod
    def with_defaults(cls, options: dict[str, Any], net: str) -> dict[str, Any]:
        return {**tokenizer_of(net), **options}

    def load(self, root: Path | None) -> Task:
        """The task; comments become token ids or word features."""
        folder, problems = find(root), Problems()
        table = Comments(folder / TABLE, problems)
        problems.raise_first(self.name, folder)
        require_published([] if self.allow_subset else table.mismatches())
        rows = {name: np.flatnonzero(table.split == code) for code, name in enumerate(SPLITS)}
        for name, index in rows.items():
            if not len(index):
                raise UserError(f"The {name} split of {self.name} must hold comments, but {folder / TABLE} lists none.")
        x, reader, cut = text_inputs(
            table.texts, rows, column="comment_text", id=None, tokenizer=self.tokenizer, length=self.tokens
        )
        splits = {}
        for name, index in rows.items():
            y, mentions = torch.from_numpy(table.y[index]), torch.from_numpy(table.mentions[index])
            training = self._training_groups(y, mentions) if name == "train" else None
            splits[name] = Split(x[name], y, evaluation_groups(y, mentions), training)
        return Task(
            self.name, splits, LABELS, preprocessing=reader, notes=tuple(str(note) for note in cut if note.count)
        )

    def check(self, root: Path | None) -> FolderCheck:
        """The counts in the table, and its problems."""
        folder, problems = find(root), Problems()
        table = Comments(folder / TABLE, problems)
        counts = {}
        for code, name in enumerate(SPLITS):
            rows = np.flatnonzero((table.split == code) & (table.y >= 0))
            y, mentions = torch.from_numpy(table.y[rows]), torch.from_numpy(table.mentions[rows])
            sizes = evaluation_groups(y, mentions).sizes.tolist()
            counts[name] = {"all": len(rows), **dict(zip(GROUPS, sizes, strict=True))}
        return FolderCheck(folder, [], counts, problems, table.mismatches(), self.allow_subset)

    def _training_groups(self, y: Tensor, mentions: Tensor) -> Groups:
        black = self.training_groups == "black"
        named = mentions[:, IDENTITIES.index("black")] if black else mentions.any(dim=1)
        words = ("no black", "black") if black else ("no identity", "some identity")
        return Groups.cells(y, named.long(), labels=LABELS, attributes=words)


def evaluation_groups(y: Tensor, mentions: Tensor) -> Groups:
    """The 16 groups of comments with labels ``y`` [n] that mention identities, bool [n, 8]; they overlap and leave some out."""
    of_label = torch.stack([y == label for label in range(len(LABELS))], dim=1)
    return Groups((mentions[:, :, None] & of_label[:, None, :]).flatten(1), GROUPS)


def find(root: Path | None) -> Path:
    """The archive's folder: ``root`` itself or a folder in it."""
    contents = f"{TABLE} ({', '.join(_COLUMNS)})"
    return archive_folder(
        CivilComments.name, root, [FOLDER], [TABLE], contents=contents, origin="WILDS (wilds.stanford.edu)"
    )


@final
class Comments:
    """The table: texts, label, identities mentioned and split of every comment; what is wrong is noted in ``problems``."""

    def __init__(self, path: Path, problems: Problems) -> None:
        table = read_csv(path, _COLUMNS)
        self.texts = table["comment_text"]
        code = {name: number for number, name in enumerate(SPLITS)}
        said = [text.strip() for text in table["split"]]
        self.split: NDArray[np.int64] = np.array([code.get(name, NOT_USED) for name in said], dtype=np.int64)
        bad = np.flatnonzero(self.split == NOT_USED).tolist()
        problems.add(
            f"{TABLE}: split must be train, val or test in every row", [f"row {r + 1}: {said[r]!r}" for r in bad]
        )
        toxicity = _shares("toxicity", table["toxicity"], problems)
        self.y: NDArray[np.int64] = np.where(np.isnan(toxicity), NOT_USED, toxicity >= 0.5).astype(np.int64)
        self.mentions: NDArray[np.bool_] = np.stack(
            [_shares(name, table[name], problems) >= 0.5 for name in IDENTITIES], axis=1
        )

    def mismatches(self) -> list[str]:
        """A sentence for every count that differs from the published one."""
        sizes = {name: int((self.split == code).sum()) for code, name in enumerate(SPLITS)}
        return [
            f"The {name} split of civilcomments must hold {number:,} comments as published, got {sizes[name]:,}"
            for name, number in PUBLISHED.items()
            if sizes[name] != number
        ]


def _shares(name: str, texts: list[str], problems: Problems) -> NDArray[np.float64]:
    """A column of shares in [0, 1]; other values become NaN and are noted in ``problems``."""
    import polars

    values: NDArray[np.float64] = (
        polars.Series(texts).str.strip_chars().cast(polars.Float64, strict=False).fill_null(np.nan).to_numpy()
    )
    odd = ~((values >= 0) & (values <= 1))
    problems.add(
        f"{TABLE}: {name} must be a number in [0, 1] in every row",
        [f"row {row + 1}: {texts[row]!r}" for row in np.flatnonzero(odd).tolist()],
    )
    return np.where(odd, np.nan, values)
