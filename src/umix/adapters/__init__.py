"""umix inside other libraries' interfaces, such as a scikit-learn estimator."""
