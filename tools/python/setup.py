# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys

import setuptools
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import generate  # noqa: E402


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
)
