# SPDX-License-Identifier: Apache-2.0
import atexit
import pathlib
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is written beside the sources: they may be anybody's checkout, or read-only
import setuptools  # noqa: E402
from setuptools.command.build_py import build_py  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import generate  # noqa: E402

SCRATCH = tempfile.mkdtemp(prefix="sluice-client-")
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)


class BuildWithMessages(build_py):
    """The package, and the messages beside it."""

    def run(self):
        super().run()
        generate.generate(pathlib.Path(self.build_lib) / "sluice")


def version():
    return re.search(r"project\(sluice VERSION ([0-9.]+)", (HERE.parents[1] / "CMakeLists.txt").read_text()).group(1)


setuptools.setup(
    name="sluice-client",
    version=version(),
    description="Client of a Sluice node: moves very large files between data-transfer nodes",
    license="Apache-2.0",
    python_requires=">=3.9",
    packages=["sluice"],
    package_data={"sluice": ["py.typed"]},
    install_requires=["grpcio>=1.51", generate.runtime_requirement()],
    cmdclass={"build_py": BuildWithMessages},
    options={"build": {"build_base": SCRATCH}, "egg_info": {"egg_base": SCRATCH}},
)
