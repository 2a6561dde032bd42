"""Training: one training loop, objectives, and the context that runs and resumes the fits of a run."""

from umix.training.context import Context
from umix.training.fit_settings import FitSettings
from umix.training.objective import MeanRisk, Objective, State
from umix.training.trajectory import Trajectory

__all__ = ["Context", "FitSettings", "MeanRisk", "Objective", "State", "Trajectory"]
