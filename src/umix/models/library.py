"""Libraries that only some nets need, imported when such a net is built."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from umix.errors import UserError


def library(name: str, *, extra: str, net: str = "") -> ModuleType:
    """The module ``name``; raises UserError that says what to install if it is missing or broken.

    ``extra`` is the extra of umix that installs it, empty if there is none. ``net`` is the name of the only net that needs it.
    """
    nets = f"Nets called {extra}:… need {name}" if extra and not net else f"The net {net or name} needs {name}"
    try:
        return import_module(name)
    except Exception as error:  # a library that was built for another torch may raise anything
        if not installed(name):
            raise UserError(f"{nets}, which is not installed: {install_command(name, extra)}.") from None
        reason = " ".join(str(error).split())
        raise UserError(
            f"{nets}, which is installed but cannot be imported ({reason}); install a build of it for "
            f"this torch: {install_command(name, extra, upgrade=True)}."
        ) from None


def install_command(name: str, extra: str, *, upgrade: bool = False) -> str:
    """The command that installs the library ``name``, by the ``extra`` of umix if it has one.

    >>> install_command("transformers", "hf"), install_command("monai.networks", "")
    ("pip install 'umix[hf]'", 'pip install monai')
    """
    package = f"'umix[{extra}]'" if extra else name.partition(".")[0]
    return f"pip install {'-U ' if upgrade else ''}{package}"


def installed(name: str) -> bool:
    """Whether the library ``name`` can be found; it is not imported."""
    try:
        return find_spec(name) is not None
    except ValueError:  # a module that was put into sys.modules by hand has no spec
        return True
