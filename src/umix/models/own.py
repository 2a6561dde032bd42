"""A net of your own: ``module.path:factory``, from the current folder or an installed package.

``factory(example, n_classes)`` returns a ``umix.models.Net`` or the pair ``(body, head)`` of modules, where the body gives features
[batch, width]. With ``--set net.weights=FILE`` it is called as ``factory(example, n_classes, weights=FILE)``. The key of a run
depends on the module's file and on that file, but on nothing else that the factory reads or imports.
"""

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, final

from pydantic import Field
from torch import Tensor, nn

from umix.errors import UserError, cause, unknown
from umix.models.backbone import WeightsFromFile, kind_of
from umix.models.net import Net
from umix.models.weight_files import files_hash


@final
class OwnNet(WeightsFromFile):
    """A net of your own, made by a function in a module of the current folder or of an installed package."""

    name: ClassVar[str] = "own"

    factory: str = Field(description="module.path:function")

    @classmethod
    def usage(cls) -> str:
        return "MODULE:FACTORY"

    @classmethod
    def options_in(cls, name: str) -> dict[str, Any] | None:
        module, _, factory = name.partition(":")
        parts = [*module.split("."), factory]
        return {"factory": name} if all(part.isidentifier() for part in parts) else None

    @property
    def title(self) -> str:
        return self.factory

    @property
    def content(self) -> str:
        file = own_module(self.factory).__file__
        return files_hash([Path(path) for path in (file, self.weights) if path is not None])

    @property
    def names_its_weights(self) -> bool:
        return False  # the factory may take them from anywhere

    def parts(self, example: Tensor, n_classes: int) -> tuple[nn.Module, nn.Module | None]:
        module, _, name = self.factory.partition(":")
        factory = getattr(own_module(self.factory), name, None)
        if not callable(factory):
            raise unknown(
                f"factory in {module}",
                name,
                [n for n, value in vars(own_module(self.factory)).items() if callable(value)],
            )
        made = self._made(factory, example, n_classes)
        match made:
            case Net():
                whole = made.body if made.encoder is None else nn.Sequential(made.encoder, made.body)
                return whole, made.head
            case (nn.Module() as body, nn.Module() as head):
                return body, head
        kinds = ", ".join(type(part).__name__ for part in made) if isinstance(made, tuple) else ""
        raise UserError(
            f"{self.factory}(example, n_classes) must return a umix.models.Net or a pair (body, head) of torch modules, got "
            f"{f'({kinds})' if kinds else type(made).__name__}."
        )

    def _made(self, factory: Callable[..., Any], example: Tensor, n_classes: int) -> Any:
        """The result of ``factory``; raises UserError if it cannot be called like this or raises itself."""
        options = {} if self.weights is None else {"weights": self.weights}
        try:
            inspect.signature(factory).bind(example, n_classes, **options)
        except TypeError as error:
            call = "(example, n_classes, weights=FILE)" if options else "(example, n_classes)"
            raise UserError(f"The factory {self.factory} must be callable as {call}, but it is not: {error}.") from None
        except ValueError:
            pass  # some functions written in C have no signature
        try:
            with redirect_stdout(sys.stderr):  # so that prints of the user's code are not in umix's output
                return factory(example, n_classes, **options)
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            raise UserError(
                f"The factory {self.factory} must make a net for examples of {kind_of(example)} and {n_classes} classes, but it "
                f"raised {cause(error)}; correct the factory."
            ) from None


def own_module(title: str) -> ModuleType:
    """The module of ``title``, which is ``module.path:factory``; its prints go to standard error."""
    name = title.partition(":")[0]
    with _current_folder(), redirect_stdout(sys.stderr):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise UserError(f"The module {name} of the net {title} needs {error.name}, which is missing.") from None
            raise UserError(
                f"There is no module {name} in the current folder or among the installed packages, which the net "
                f"{title} must come from."
            ) from None
        except (Exception, SystemExit) as error:
            raise UserError(
                f"The module {name} of the net {title} must be importable, but importing it raised {cause(error)}; "
                "correct the module."
            ) from None


@contextmanager
def _current_folder() -> Iterator[None]:
    """Inside the block modules of the current folder can be imported."""
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
