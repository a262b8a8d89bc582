#!/usr/bin/python3
# Makes sluice/api_pb2.py, sluice/log_pb2.py and their types of control/proto: generate.py DIRECTORY.
#
# By grpcio-tools where that is installed (pip brings it), otherwise by the protoc of the system.
# SPDX-License-Identifier: Apache-2.0
import importlib.metadata
import pathlib
import subprocess
import sys

PROTO = pathlib.Path(__file__).resolve().parents[2] / "control/proto"


def generate(directory):
    """api_pb2.py, log_pb2.py and their .pyi, in this directory."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    arguments = [f"-I{PROTO}", f"--python_out={directory}", f"--pyi_out={directory}", "api.proto", "log.proto", "peers.proto"]
    try:
        from grpc_tools import protoc
    except ImportError:
        subprocess.run(["protoc", *arguments], check=True)
        return
    if protoc.main(["protoc", *arguments]) != 0:
        raise RuntimeError(f"protoc could not read the messages in {PROTO}")


def runtime_requirement():
    """Messages need a protobuf that is no older than the one they were made with."""
    try:
        made_with = importlib.metadata.version("protobuf")
    except importlib.metadata.PackageNotFoundError:
        return "protobuf>=3.21"
    return f"protobuf>={made_with}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: generate.py DIRECTORY")
    generate(sys.argv[1])
