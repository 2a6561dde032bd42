"""UMIX with the ``Trainer`` of Hugging Face transformers: ``RecordingTrainer``, then ``UMIXTrainer``; ``GroupMetrics`` for both."""

try:
    from umix.adapters.transformers.trainers import RecordingTrainer, UMIXTrainer
except ImportError as error:
    from umix.errors import UserError

    raise UserError(
        f"umix.adapters.transformers needs transformers and accelerate, which cannot be imported ({error}): "
        "pip install 'umix[hf]'."
    ) from error
from umix.adapters.group_counts import GroupMetrics

__all__ = ["GroupMetrics", "RecordingTrainer", "UMIXTrainer"]
