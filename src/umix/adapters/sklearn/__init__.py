"""umix for scikit-learn: a classifier, and the accuracy of the worst group as a metric and a scorer."""

from umix.adapters.sklearn.classifier import UMIXClassifier
from umix.adapters.sklearn.worst_group import worst_group_accuracy, worst_group_scorer

__all__ = ["UMIXClassifier", "worst_group_accuracy", "worst_group_scorer"]
