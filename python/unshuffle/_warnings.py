from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning


class ConvergenceWarning(SklearnConvergenceWarning, RuntimeWarning):
    """There is a result but it should not be trusted as it is; the text is that of the command line."""
