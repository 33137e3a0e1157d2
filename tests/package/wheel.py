"""Run where a wheel was installed: what it links, how long its import takes, a fit, the command line program."""

import os
import subprocess
import sys
import time
from pathlib import Path

BASE = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libstdc++.so.6", "libgcc_s.so.1"}
BASE |= {"libz.so.1", "ld-linux-x86-64.so.2", "linux-vdso.so.1"}

start = time.process_time()
import numpy  # noqa: E402,F401

of_numpy = time.process_time() - start
import unshuffle  # noqa: E402

of_all = time.process_time() - start
print(f"import: {of_all:.3f} s of processor time, {of_numpy:.3f} s of it NumPy's")
assert of_all < 0.3 or "EMULATED" in os.environ, "the import takes too long"

package = Path(unshuffle.__file__).parent
for path in [*package.rglob("*.so"), *package.rglob("bin/unshuffle"), *package.rglob("lib/unshuffle/*/unshuffle")]:
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        name, _, target = (part.strip() for part in line.partition("=>"))
        known = os.path.basename(name.split(" (")[0]) in BASE or "/unshuffle.libs/" in target
        assert known, f"{path} needs {line.strip()}, which is neither the system's base nor in the wheel"
print(f"libraries: the system's base and {len(list((package.parent / 'unshuffle.libs').iterdir()))} of the wheel's own")

sample = unshuffle.simulate("sensing", 300, dim_z=2, shuffle=0.5, snr=100, mean=1, seed=1)
model = unshuffle.ShuffledRegressor().fit(sample.z, sample.y)
assert abs(model.coef_ - sample.coefficients).max() < 0.2, model.coef_
print("compiled part:", Path(sys.modules["unshuffle._core"].__file__).relative_to(package))

program = subprocess.run([sys.executable, "-m", "unshuffle", "info"], capture_output=True, text=True, check=True).stdout
print(*[line for line in program.splitlines() if line.startswith(("version", "cpu_features"))], sep="\n")
