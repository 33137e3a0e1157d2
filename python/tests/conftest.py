import pytest

import unshuffle


@pytest.fixture(scope="session")
def half_shuffled():
    """Half of the rows are still in order."""
    return unshuffle.simulate("sensing", 400, dim_z=3, shuffle=0.5, snr=100, mean=1, seed=1)


@pytest.fixture(scope="session")
def unlinked():
    """All links lost, a skewed feature on one side and another known on the other."""
    return unshuffle.simulate("gamma", 300, dim_z=2, noise=0.01, seed=2)
