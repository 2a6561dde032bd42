"""Classes by name: those of umix, and those that installed packages add through entry points."""

import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, final

from umix.errors import UserError, cause, unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


@final
@dataclass(frozen=True)
class PlugIn:
    """A class that an installed package adds; ``problem`` says why it cannot be used, and is empty if it can."""

    thing: str
    name: str
    package: str
    problem: str


@final
class Registry(Mapping[str, type[T]]):
    """Final subclasses of ``base`` by name: those of umix, then those of installed packages (entry points ``group``).

    ``own`` gives the classes of umix as ``module:Class``; a class is imported when it is looked up.
    Entry points are read when a name is looked up that is not one of umix. Listing the names imports
    all plug-ins.
    A plug-in that cannot be used is left out of the list and described in ``plug_ins``; looking up
    its name raises UserError. A plug-in cannot replace a class of umix.
    """

    def __init__(self, thing: str, *, base: str, group: str, own: dict[str, str | type[T]]) -> None:
        self.thing = thing
        self.own = own
        self._base = base
        self._group = group

    def __getitem__(self, name: str) -> type[T]:
        if name in self.own:
            return self._own_class(name)
        entry = next((entry for entry in self._entries() if entry.name == name), None)
        if entry is None:
            raise KeyError(name)
        kind = self._imported(entry)
        if isinstance(kind, str):
            raise UserError(kind)
        return kind

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from (plug_in.name for plug_in in self.plug_ins if not plug_in.problem)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def find(self, name: str) -> type[T]:
        """The class called ``name``; an unknown name raises UserError, which proposes the most similar one."""
        if name not in self:
            raise unknown(self.thing, name, self)
        return self[name]

    @property
    def own_classes(self) -> dict[str, type[T]]:
        """The classes that come with umix, without plug-ins."""
        return {name: self._own_class(name) for name in self.own}

    @property
    def plug_ins(self) -> tuple[PlugIn, ...]:
        """The classes that installed packages add, imported, sorted by the name of the package."""
        return tuple(self._plug_in(entry) for entry in self._entries())

    def _plug_in(self, entry: "EntryPoint") -> PlugIn:
        package = _package(entry)
        first = next(other for other in self._entries() if other.name == entry.name)
        if entry.name in self.own:
            problem = f"The {self.thing} {entry.name!r} of {package} is not used, because umix has one of that name."
        elif first is not entry:
            problem = (
                f"The {self.thing} {entry.name!r} of {package} is not used, because {_package(first)} adds one too."
            )
        else:
            kind = self._imported(entry)
            problem = kind if isinstance(kind, str) else ""
        return PlugIn(self.thing, entry.name, package, problem)

    def _own_class(self, name: str) -> type[T]:
        entry = self.own[name]
        return _class_at(entry) if isinstance(entry, str) else entry

    def _entries(self) -> "tuple[EntryPoint, ...]":
        return _installed(self._group, tuple(sys.path))

    def _imported(self, entry: "EntryPoint") -> type[T] | str:
        kind: type[T] | str = _imported(entry, self.thing, self._base, tuple(sys.path))
        return kind


@cache
def _installed(group: str, path: tuple[str, ...]) -> "tuple[EntryPoint, ...]":
    """The entry points of the installed packages; ``path`` is sys.path, so that the cache misses when it changes."""
    from importlib.metadata import entry_points  # a slow import that is rarely needed

    return tuple(sorted(entry_points(group=group), key=lambda entry: (_package(entry), entry.name)))


@cache
def _imported(entry: "EntryPoint", thing: str, base: str, path: tuple[str, ...]) -> Any:
    """The class that ``entry`` names, or a sentence that says why it cannot be used; ``path`` is sys.path."""
    subject = f"The {thing} {entry.name!r} of {_package(entry)}"
    try:
        with redirect_stdout(sys.stderr):  # what a package prints while it is imported is not umix's output
            kind = entry.load()
    except (Exception, SystemExit) as error:
        return (
            f"{subject} must be importable, but importing it raised {cause(error)}; correct or uninstall the package."
        )
    parent = _class_at(base)
    if not (isinstance(kind, type) and issubclass(kind, parent)) or inspect.isabstract(kind):
        return f"{subject} must be a class that implements {base.replace(':', '.')}, got {entry.value}."
    if getattr(kind, "name", None) != entry.name:
        return (
            f"{subject} must be registered under its own name, {getattr(kind, 'name', None)!r}; change the entry point."
        )
    return kind


def _class_at(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _package(entry: "EntryPoint") -> str:
    """Name and version of the package that ``entry`` belongs to."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.module
