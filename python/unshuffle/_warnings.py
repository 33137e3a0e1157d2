from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning


class ConvergenceWarning(SklearnConvergenceWarning, RuntimeWarning):
    """The result is there but should not be trusted as it is; the text is that of the command line."""
