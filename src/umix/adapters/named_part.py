"""The part of a module that somebody names, such as its last layer."""

from torch import nn

from umix.errors import unknown


def named_part(module: nn.Module, name: str) -> nn.Module:
    """The part of ``module`` that is called ``name``, with dots as in ``named_modules``; itself for an empty name.

    >>> named_part(nn.Sequential(nn.ReLU()), "0")
    ReLU()
    """
    try:
        return module.get_submodule(name)
    except AttributeError:
        known = [part for part, _ in module.named_modules() if part]
        raise unknown(f"part of {type(module).__name__}", name, known) from None
