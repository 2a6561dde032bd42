"""Methods, one file per paper: a method is a set of hyperparameters and a recipe of one or more fits."""

from umix.methods.method import Method
from umix.methods.registry import METHODS, method

__all__ = ["METHODS", "Method", "method"]
