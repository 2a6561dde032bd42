"""The module of a model that makes its logits: what enters it are the features."""

from torch import nn

from umix.adapters.named_part import named_part
from umix.errors import UserError

_NAMES = ("classifier", "score", "classification_head", "logits_proj", "fc")


def classification_head(model: nn.Module, given: nn.Module | str | None) -> nn.Module:
    """The head of ``model``: ``given``, itself or by its name, else that of transformers' models for classification.

    A model with a second head, for distillation, has no head to be found: its logits are the mean of both.
    """
    if isinstance(given, nn.Module):
        return given
    if given is not None:
        return named_part(model, given)
    children: dict[str, nn.Module] = dict(model.named_children())
    found = [children[name] for name in _NAMES if name in children]
    if not found or any("distill" in name for name in children):
        raise UserError(
            f"The model must have one head called {', '.join(_NAMES[:-1])} or {_NAMES[-1]}, but {type(model).__name__} has the "
            f"modules {', '.join(children)}; pass head=, the name of the module that makes the logits."
        )
    return found[0]
