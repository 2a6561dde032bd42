"""Training: one loop, an objective that says what a batch costs, and a trainer that remembers where it was."""

from umix.train.fit_settings import FitSettings
from umix.train.objective import MeanRisk, Objective, State
from umix.train.trainer import Trainer
from umix.train.trajectory import Trajectory

__all__ = ["FitSettings", "MeanRisk", "Objective", "State", "Trainer", "Trajectory"]
