"""Training: one loop, an objective that says what a batch costs, and a trainer that remembers where it was."""

from umix.training.fit_settings import FitSettings
from umix.training.objective import MeanRisk, Objective, State
from umix.training.trainer import Trainer
from umix.training.trajectory import Trajectory

__all__ = ["FitSettings", "MeanRisk", "Objective", "State", "Trainer", "Trajectory"]
