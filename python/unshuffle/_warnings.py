from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning


class ConvergenceWarning(SklearnConvergenceWarning, RuntimeWarning):
    """There is a result but it should not be trusted as it is; the text is that of the command line."""


class TableWarning(UserWarning):
    """What became of rows and columns of data frames on their way to a fit: dropped, coded, left out."""
