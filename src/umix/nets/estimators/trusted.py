"""scikit-learn's models as bytes, through skops: only types that are listed here or named by the caller are loaded."""

import zipfile
from collections.abc import Callable
from typing import Any

from umix.errors import UserError

#: Types of a fitted HistGradientBoostingClassifier beside those that skops trusts itself. Loading them runs no code of the file.
BOOSTING = frozenset(
    {
        "functools.partial",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.utils.validation.check_array",
    }
)


def dump_model(model: Any) -> bytes:
    """``model`` as skops writes it."""
    import skops.io

    content: bytes = skops.io.dumps(model)
    return content


def load_model(content: bytes, *, trusted: Callable[[str], bool]) -> Any:
    """The model in ``content``; a type that skops does not know is refused unless ``trusted`` says yes to its name."""
    import skops.io

    try:
        named = skops.io.get_untrusted_types(data=content)
        if foreign := sorted(name for name in named if not trusted(name)):
            raise UserError(
                f"A stored model must hold nothing but a scikit-learn model, but it holds {foreign[0]}; train it again."
            )
        return skops.io.loads(content, trusted=named)
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(
            f"A stored model must be whole, but it cannot be read ({' '.join(str(error).split())}); train it again."
        ) from None
