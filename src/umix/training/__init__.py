"""Training: one training loop, objectives, and the trainer that runs and resumes the fits of a run."""

from umix.training.fit_settings import FitSettings
from umix.training.objective import MeanRisk, Objective, State
from umix.training.trainer import Trainer
from umix.training.trajectory import Trajectory

__all__ = ["FitSettings", "MeanRisk", "Objective", "State", "Trainer", "Trajectory"]
