"""Libraries that only some nets need, imported when they are built."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from umix.errors import UserError


def library(name: str, *, extra: str) -> ModuleType:
    """The installed library ``name``; where it is missing or broken, an error that says what to install."""
    try:
        return import_module(name)
    except Exception as error:  # a library built for another torch fails in many ways
        if not installed(name):
            raise UserError(
                f"Nets called {extra}:… need {name}, which is not installed: pip install 'umix[{extra}]'."
            ) from None
        reason = " ".join(str(error).split())
        raise UserError(
            f"Nets called {extra}:… need {name}, which is installed but cannot be imported ({reason}); install a build of it for "
            f"this torch: pip install -U 'umix[{extra}]'."
        ) from None


def installed(name: str) -> bool:
    """Whether the library ``name`` can be found; it is not imported."""
    try:
        return find_spec(name) is not None
    except ValueError:  # a module that was put there by hand has no spec
        return True
