# The operator's API of a node, called without the command: each call of that is a process, whose CPU time a measurement
# or a test that asks hundreds of times would rather not spend.
#
# Needs Debian's python3-grpcio, python3-protobuf and protobuf-compiler.
# SPDX-License-Identifier: Apache-2.0
import functools
import importlib.util
import tempfile

from .system import REPOSITORY, HarnessError, run

PACKAGES = ("python3-grpcio", "python3-protobuf", "protobuf-compiler")


@functools.cache
def messages():
    """The classes of api.proto, as protoc makes them."""
    with tempfile.TemporaryDirectory() as made:
        run(["protoc", f"-I{REPOSITORY / 'control/proto'}", f"--python_out={made}", "api.proto"])
        spec = importlib.util.spec_from_file_location("api_pb2", f"{made}/api_pb2.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def channel(directory):
    """To the node of this directory. Its own connection: one that could not be made delays no later one."""
    import grpc  # only here: not everything that uses nodes needs it

    return grpc.insecure_channel(f"unix:{directory / 'run/control.sock'}",
                                 options=[("grpc.use_local_subchannel_pool", 1)])  # fmt: skip


def call(directory, method, request, reply, timeout_s=100):
    """The answer of the node of this directory to one call of the service Control."""
    import grpc

    with channel(directory) as connection:
        ask = connection.unary_unary(f"/sluice.api.Control/{method}",
                                     request_serializer=type(request).SerializeToString,
                                     response_deserializer=reply.FromString)  # fmt: skip
        try:
            return ask(request, timeout=timeout_s)
        except grpc.RpcError as error:
            raise HarnessError(f"{method}: {error.code().name}: {error.details()}") from None
