"""The files in the folder of a run. Their names are spelled here and nowhere else.

A run's folder is ``TASK-METHOD-KEY``, with a seed other than 0 ``TASK-METHOD-seedS-KEY``; KEY is the beginning of the run's key.
Beside the runs lie ``stages/``, one folder for each stage that runs share, and ``cache/``, decoded images and features of frozen
nets (``bench/runs/paths.py``).
"""

import os
from pathlib import Path

#: The record of a finished run. Its presence says that the run is finished; it is written last.
RECORD = "record.json"
#: The folder of the run of ERM that the run was shown beside.
ORDINARY = "ordinary.txt"
#: The error of a run that failed and was not repeated.
FAILED = "failed.json"
#: The checkpoint of an unfinished fit: the final fit has it in the run's folder, a shared stage in the folder of the stage.
CHECKPOINT = "checkpoint.safetensors"
#: The validation counts of candidates in one stage; the checkpoint goes when they have dropped out or one is chosen.
SELECTION_COUNTS = "selection.safetensors"
#: Uncertainty, weight, inferred environment or group, and label of every training example, as far as the method has them.
EXAMPLES = "examples.safetensors"
#: Features of the most uncertain training examples and of as many others, for the report.
EXAMPLE_FEATURES = "closer.safetensors"
#: Label, group, row or file of every training example, for the report.
TRAINING_ROWS = "training.parquet"
#: Label, prediction, probabilities, groups, and row or file of every validation and test example under the selected net.
PREDICTIONS = "predictions.parquet"
#: The same by argmax, where the run's own threshold is another.
ARGMAX_PREDICTIONS = "predictions-argmax.parquet"
#: Every measure and rate of every epoch, by argmax.
EPOCHS = "epochs.csv"
#: Which training example was predicted correctly in which epoch of the first stage.
TRAJECTORY = "trajectory.safetensors"
#: How often each class was predicted by argmax as each other, by split, epoch and group.
CONFUSION = "confusion.safetensors"
#: The candidate biases of the classes, and the hits of each by split, epoch and group.
THRESHOLDS = "thresholds.safetensors"
#: What was learned to turn raw data into inputs, by the kind of data.
TABLE_COLUMNS = "columns.json"
TABLE_TEXTS = "columns-texts.safetensors"
ARRAY_INPUTS = "arrays.safetensors"
IMAGE_INPUTS = "images.json"
TEXT_INPUTS = "texts.safetensors"
#: Which inputs matter, as ``umix evaluate --importance`` found last.
IMPORTANCE = "importance.json"
#: What was recorded of single folds of a stage that is cross-fitted, until the whole trajectory is there.
ANY_FOLD = "fold-*.safetensors"
_WEIGHTS = "weights"
_TABLES = (TRAINING_ROWS, PREDICTIONS, ARGMAX_PREDICTIONS, EPOCHS)
_TEXTS = (RECORD, ORDINARY, FAILED, TABLE_COLUMNS, IMAGE_INPUTS, IMPORTANCE)


def is_run_file(path: Path) -> bool:
    """Whether ``path`` names a table or a JSON file in the folder of a finished run, which no output may replace."""
    return path.name in (*_TABLES, *_TEXTS) and os.path.exists(path.with_name(RECORD))


def weights_path(directory: Path, epoch: int) -> Path:
    """The weights after ``epoch`` (counted from 0); kept for the epochs that some selection rule chooses."""
    return directory / _WEIGHTS / f"epoch-{epoch:04d}.safetensors"


def weights_folder(directory: Path) -> Path:
    """The folder of all kept weights."""
    return directory / _WEIGHTS


def trajectory_path(directory: Path, stage: str) -> Path:
    """The trajectory of a recorded stage, copied into the run's folder."""
    return directory / f"{stage}.safetensors"


def fold_path(directory: Path, repeat: int, fold: int) -> Path:
    """What was recorded of one fold of a stage that is cross-fitted, until the whole trajectory is there."""
    return directory / f"fold-{repeat}-{fold}.safetensors"
