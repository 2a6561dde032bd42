"""Boosted trees as a module of torch, for formats that store a graph. treelite reads the trees of three libraries.

All trees are walked at once: a row stands at one node of every tree, and goes one level down at a time. A boosted model is linear
in the leaves that a row ends in, so logits are one linear map of their values.
"""

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Arrays = dict[str, NDArray[Any]]
#: What treelite tells of every node of a tree, and of its lists of categories.
_NODE_FIELDS = ("node_type", "split_index", "threshold", "cmp", "cleft", "cright", "default_left", "leaf_value")
_CATEGORY_FIELDS = ("category_list", "category_list_begin", "category_list_end", "category_list_right_child")
_LEAF, _CATEGORICAL, _BELOW = 0, 2, 2  # kinds of nodes; the comparison <, all others are <=


@final
class TreeLayers(nn.Module):
    """Logits [n, classes] of rows [n, columns], float32 with NaN for gaps; columns of categories hold codes."""

    feature: Tensor  # of every node of all trees: the column that it looks at
    threshold: Tensor  # at most so much goes left
    left: Tensor  # where to go; leaves lead to themselves
    right: Tensor
    missing_left: Tensor
    category_row: Tensor  # the row of ``goes_left`` that decides; 0: the threshold does
    value: Tensor  # of a leaf
    goes_left: Tensor  # bool [(nodes that split categories + 1) × (codes + 1)]; the last code stands for all others
    roots: Tensor
    weight: Tensor  # of the leaf of every tree in every logit, [trees, classes]
    bias: Tensor

    def __init__(self, trees: Sequence[Arrays], weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        roots = np.cumsum([0, *(len(tree["node_type"]) for tree in trees)])
        nodes = {name: np.concatenate([tree[name] for tree in trees]) for name in _NODE_FIELDS}
        here, leaf = np.arange(roots[-1]), nodes["node_type"] == _LEAF
        first = np.repeat(roots[:-1], np.diff(roots))
        categorical = nodes["node_type"] == _CATEGORICAL
        self.depth = max(map(_depth, trees))
        lists = [one for tree in trees for one in _category_lists(tree)]
        self.n_codes = max((int(codes.max(initial=-1)) + 1 for _, codes in lists), default=0)
        goes_left = torch.zeros(len(lists) + 1, self.n_codes + 1, dtype=torch.bool)
        for row, (listed_left, codes) in enumerate(lists, start=1):
            goes_left[row] = not listed_left
            goes_left[row, torch.from_numpy(codes)] = listed_left
        for name, values in (
            ("feature", np.where(leaf, 0, nodes["split_index"]).astype(np.int64)),
            ("threshold", at_most(nodes["threshold"], strictly=nodes["cmp"] == _BELOW)),
            ("left", np.where(leaf, here, first + nodes["cleft"])),
            ("right", np.where(leaf, here, first + nodes["cright"])),
            ("missing_left", nodes["default_left"].astype(bool)),
            ("category_row", np.where(categorical, np.cumsum(categorical), 0)),
            ("value", nodes["leaf_value"].astype(np.float64)),
            ("roots", roots[:-1]),
        ):
            self.register_buffer(name, torch.from_numpy(values))
        for name, tensor in (("goes_left", goes_left.flatten()), ("weight", weight), ("bias", bias)):
            self.register_buffer(name, tensor)

    @classmethod
    def of(
        cls, model: Any, weight: Tensor, bias: Tensor, *, ends: Sequence[int], logits: Tensor, never: Tensor
    ) -> Self:
        """The layers of a ``model`` of treelite.

        ``logits`` [columns, classes] and ``never`` [classes] make logits of the scores of a stage; ``weight`` and ``bias``
        are those of a last layer that makes logits of the ones after each of ``ends`` stages.
        """
        header, n_columns = model.get_header_accessor(), len(logits)
        column = torch.from_numpy(header.get_field("class_id")[: ends[-1] * n_columns].astype(np.int64))
        accessors = [model.get_tree_accessor(tree) for tree in range(len(column))]
        trees = [{name: one.get_field(name) for name in (*_NODE_FIELDS, *_CATEGORY_FIELDS)} for one in accessors]
        stage = torch.arange(len(column)) // n_columns
        counted = stage[:, None] < torch.tensor(ends)  # [trees, ends]
        of_tree = nn.functional.one_hot(column, n_columns).double() @ logits
        blocks = (counted[:, :, None] * of_tree[:, None]).flatten(1)  # [trees, ends × classes]
        base = torch.from_numpy(header.get_field("base_scores").astype(np.float64))
        offset = (base @ logits + never).repeat(len(ends))
        mixed = weight.detach().double().T
        return cls(trees, blocks @ mixed, offset @ mixed + bias.detach().double())

    def forward(self, x: Tensor) -> Tensor:
        node = self.roots.expand(x.shape[0], -1)  # len(x) would be traced as a constant
        for _ in range(self.depth):
            values = x.gather(1, self.feature[node])
            missing = values.isnan()
            code = values.nan_to_num(0.0).clamp(0, self.n_codes).long()
            row = self.category_row[node]
            listed = self.goes_left[row * (self.n_codes + 1) + code]
            number = (row == 0) & (values <= self.threshold[node])
            goes_left = (missing & self.missing_left[node]) | (~missing & (number | ((row > 0) & listed)))
            node = torch.where(goes_left, self.left[node], self.right[node])
        return (self.value[node] @ self.weight + self.bias).float()


def at_most(thresholds: NDArray[Any], *, strictly: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The largest float32 that is at most each threshold, or ``strictly`` below it: so float32 inputs are compared as in float64.

    >>> at_most(np.array([1.0, 1.0]), strictly=np.array([False, True])) < 1.0
    array([False,  True])
    """
    with np.errstate(over="ignore"):
        near = thresholds.astype(np.float32)
    beyond = np.where(strictly, near.astype(np.float64) >= thresholds, near.astype(np.float64) > thresholds)
    return np.where(beyond, np.nextafter(near, np.float32(-np.inf)), near)


def _category_lists(tree: Arrays) -> list[tuple[bool, NDArray[np.int64]]]:
    """Of every node that splits categories: whether those of its list go left, and the list."""
    codes, begins, ends = (tree[name].astype(np.int64) for name in _CATEGORY_FIELDS[:3])
    return [
        (not tree["category_list_right_child"][node], codes[begins[node] : ends[node]])
        for node in np.flatnonzero(tree["node_type"] == _CATEGORICAL)
    ]


def _depth(tree: Arrays) -> int:
    """How many splits lie above the deepest leaf; a child comes after its parent."""
    depths = np.zeros(len(tree["node_type"]), dtype=np.int64)
    for node in np.flatnonzero(tree["node_type"] != _LEAF):
        depths[[tree["cleft"][node], tree["cright"][node]]] = depths[node] + 1
    return int(depths.max())
