"""The name of a fit by its content."""

import hashlib
import json
from collections.abc import Mapping

from umix.nets.net import NetSettings
from umix.training.fit_settings import FitSettings


def stage_key(
    stage: str,
    train: str,
    n_classes: int,
    net: NetSettings,
    settings: FitSettings,
    seed: int,
    more: Mapping[str, str],
) -> str:
    """A hash of all that decides the numbers of ``stage``, except for what a method puts into its objective, after its name.

    ``train`` is the training split's fingerprint; ``more`` is what this stage depends on beside the rest.
    """
    content = {
        "train": train,
        "classes": n_classes,
        "net": net.as_json(),
        "settings": settings.model_dump(mode="json"),
        "seed": seed,
        **more,
    }
    return f"{stage}-{hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]}"
