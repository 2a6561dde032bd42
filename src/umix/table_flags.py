"""The flags of ``umix run`` that say which column of a table is what."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, final

from cyclopts import Parameter


@final
@Parameter(name="*")
@dataclass(frozen=True)
class TableFlags:
    """For a table of your own."""

    label: Annotated[str | None, Parameter(help="Table: column of the class to predict.")] = None
    groups: Annotated[str | None, Parameter(help="Table: columns that make the groups, as a,b; none: no groups.")] = (
        None
    )
    split: Annotated[str | None, Parameter(help="Table: column that says train, val or test.")] = None
    drop: Annotated[str | None, Parameter(help="Table: columns that are not inputs, as a,b.")] = None
    id: Annotated[str | None, Parameter(help="Table: column that names each row; not an input.")] = None

    def settings(self) -> dict[str, Any]:
        """The flags that were given, as settings of the task."""
        return {f"task.{name}": value for name, value in asdict(self).items() if value is not None}
