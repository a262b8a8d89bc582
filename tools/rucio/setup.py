# SPDX-License-Identifier: Apache-2.0
import atexit
import pathlib
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is written beside the sources: they may be anybody's checkout, or read-only
import setuptools  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SCRATCH = tempfile.mkdtemp(prefix="sluice-rucio-")
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)


def version():
    return re.search(r"project\(sluice VERSION ([0-9.]+)", (HERE.parents[1] / "CMakeLists.txt").read_text()).group(1)


setuptools.setup(
    name="sluice-rucio",
    version=version(),
    description="A Rucio transfertool: Sluice nodes move the files of Rucio's rules",
    license="Apache-2.0",
    python_requires=">=3.9",
    packages=["sluice_rucio"],
    install_requires=["rucio>=41", f"sluice-client>={version()}"],
    entry_points={"console_scripts": ["sluice-rucio-daemon = sluice_rucio.daemon:main"]},
    options={"build": {"build_base": SCRATCH}, "egg_info": {"egg_base": SCRATCH}},
)
