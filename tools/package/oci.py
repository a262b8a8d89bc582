# The image of the bundle, as a directory of the OCI's layout: written without an engine or a registry, and the same bytes
# for the same commit. https://github.com/opencontainers/image-spec, image-layout.md, config.md, manifest.md.
#
#   podman pull oci:build/package/sluice-VERSION-x86_64.oci
# SPDX-License-Identifier: Apache-2.0
import datetime
import gzip
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
from pathlib import Path

from bundle import NAMES, epoch_s, write_tar
from common import OUT, Failure, version

USER = 7400  # sluice-control, in the image's own /etc/passwd
_PASSWD = f"root:x:0:0:root:/:/nothing\nsluice-control:x:{USER}:{USER}:Sluice:/etc/sluice:/nothing\n"
_GROUP = f"root:x:0:\nsluice-control:x:{USER}:\nsluice:x:{USER + 1}:sluice-control\n"
_KINDS = "application/vnd.oci.image."


def _lay_out(root, place):
    """The files of the image."""
    shutil.copytree(root / "bin", place / "usr/lib/sluice/bin", symlinks=True, ignore=shutil.ignore_patterns("sluice-console"))
    shutil.copytree(root / "lib", place / "usr/lib/sluice/lib", symlinks=True, ignore=shutil.ignore_patterns("sluice-console"))
    shutil.copytree(root / "share/doc/sluice/bundled", place / "usr/share/doc/sluice/bundled")
    for folder, mode in (("usr/bin", 0o755), ("etc/sluice", 0o755), ("tmp", 0o1777)):
        (place / folder).mkdir(parents=True)
        (place / folder).chmod(mode)
    for name in NAMES:
        (place / "usr/bin" / name).symlink_to(f"../lib/sluice/bin/{name}")
    (place / "etc/passwd").write_text(_PASSWD)
    (place / "etc/group").write_text(_GROUP)


def make(root):
    target = OUT / f"sluice-{version()}-x86_64.oci"
    blobs = target / "blobs/sha256"
    blobs.mkdir(parents=True)

    def put(data):
        digest = hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"digest": f"sha256:{digest}", "size": len(data)}

    def put_json(value):
        return put(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())

    layer = io.BytesIO()
    with tempfile.TemporaryDirectory(dir=OUT) as place:
        _lay_out(root, Path(place))
        write_tar(layer, "", Path(place), owners={"etc/sluice": USER})
    created = datetime.datetime.fromtimestamp(epoch_s(), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {"org.opencontainers.image.title": "sluice", "org.opencontainers.image.version": version(),
              "org.opencontainers.image.licenses": "Apache-2.0"}  # fmt: skip
    config = put_json({
        "created": created, "architecture": "amd64", "os": "linux",
        "config": {"User": f"{USER}:{USER}", "Env": ["PATH=/usr/bin", "SLUICE_NODE=/etc/sluice/node"],
                   "Cmd": ["sluice-control"], "ExposedPorts": {"7400/tcp": {}}, "Labels": labels, "StopSignal": "SIGTERM"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer.getvalue()).hexdigest()}"]},
        "history": [{"created": created, "created_by": "./dev package --oci"}],
    })  # fmt: skip
    packed = put(gzip.compress(layer.getvalue(), 6, mtime=0))
    manifest = put_json({
        "schemaVersion": 2, "mediaType": _KINDS + "manifest.v1+json",
        "config": {"mediaType": _KINDS + "config.v1+json", **config},
        "layers": [{"mediaType": _KINDS + "layer.v1.tar+gzip", **packed}],
    })  # fmt: skip
    (target / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    (target / "index.json").write_text(json.dumps({
        "schemaVersion": 2, "mediaType": _KINDS + "index.v1+json",
        "manifests": [{"mediaType": _KINDS + "manifest.v1+json", **manifest,
                       "platform": {"architecture": "amd64", "os": "linux"},
                       "annotations": {"org.opencontainers.image.ref.name": version()}}],
    }, sort_keys=True))  # fmt: skip
    return target


def unpack(root):
    """The newest image, as an engine unpacks it: every blob is compared with its digest. The folder of its programs."""
    target = OUT / f"sluice-{version()}-x86_64.oci"

    def blob(descriptor):
        data = (target / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
        if hashlib.sha256(data).hexdigest() != descriptor["digest"].split(":")[1] or len(data) != descriptor["size"]:
            raise Failure(f"{target}: {descriptor['digest']} is not what its name says")
        return data

    index = json.loads((target / "index.json").read_text())
    manifest = json.loads(blob(index["manifests"][0]))
    config = json.loads(blob(manifest["config"]))
    for descriptor, expected in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
        layer = gzip.decompress(blob(descriptor))
        if f"sha256:{hashlib.sha256(layer).hexdigest()}" != expected:
            raise Failure(f"{target}: the layer is not what the configuration says")
        with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
            tar.extractall(root, numeric_owner=True)
    path = next(word for word in config["config"]["Env"] if word.startswith("PATH="))
    return path.removeprefix("PATH=").split(":")
