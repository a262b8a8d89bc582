#!/usr/bin/python3
# Makes sluice/api_pb2.py, sluice/log_pb2.py and their types of control/proto, and sluice/options.py of the options that
# api.proto has: generate.py DIRECTORY.
#
# By grpcio-tools where that is installed (pip brings it), otherwise by the protoc of the system.
# SPDX-License-Identifier: Apache-2.0
import importlib.metadata
import pathlib
import subprocess
import sys
import tempfile

PROTO = pathlib.Path(__file__).resolve().parents[2] / "control/proto"


# Fields of TransferOptions that are no options: `top` goes with a path, and of the others Options makes what people write.
NO_OPTIONS = {"rules", "names", "local_files", "top", "lease", "part", "expected"}
TYPES = {"BOOL": ("bool", "False"), "STRING": ("str", '""'), "DOUBLE": ("float", "0.0")}

HEAD = '''"""The options of a transfer, as control/proto/api.proto has them. Made by generate.py."""
# SPDX-License-Identifier: Apache-2.0
import dataclasses
from typing import Optional


@dataclasses.dataclass(frozen=True)
class TransferOptions:
    """What is left out the node decides. Each is the option of `sluice send` of that name."""

'''


def generate(directory):
    """api_pb2.py, log_pb2.py and their .pyi, and options.py, in this directory."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        described = pathlib.Path(scratch) / "api"
        _protoc(f"--python_out={directory}", f"--pyi_out={directory}", f"--descriptor_set_out={described}",
                "--include_source_info", "api.proto", "log.proto", "peers.proto")  # fmt: skip
        (directory / "options.py").write_text(_options(described.read_bytes()), encoding="utf-8")


def _protoc(*arguments):
    try:
        from grpc_tools import protoc
    except ImportError:
        subprocess.run(["protoc", f"-I{PROTO}", *arguments], check=True)
        return
    if protoc.main(["protoc", f"-I{PROTO}", *arguments]) != 0:
        raise RuntimeError(f"protoc could not read the messages in {PROTO}")


def _options(described):
    """The text of options.py, from a description of api.proto: what its remarks say stands beside each option."""
    from google.protobuf import descriptor_pb2

    file = next(each for each in descriptor_pb2.FileDescriptorSet.FromString(described).file if each.name == "api.proto")
    at, message = next((at, each) for at, each in enumerate(file.message_type) if each.name == "TransferOptions")
    remarks = {tuple(each.path): each.trailing_comments.strip() for each in file.source_code_info.location}
    text = HEAD
    for number, field in enumerate(message.field):
        if field.name in NO_OPTIONS:
            continue
        kind = descriptor_pb2.FieldDescriptorProto.Type.Name(field.type).replace("TYPE_", "")
        name, without = TYPES.get(kind, ("int", "0"))
        if field.proto3_optional:
            name, without = f"Optional[{name}]", "None"
        remark = " ".join(remarks.get((4, at, 2, number), "").split())
        text += f"    {field.name}: {name} = {without}" + (f"  # {remark}" if remark else "") + "\n"
    return text


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
