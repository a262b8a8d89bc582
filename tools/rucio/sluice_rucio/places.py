"""Where a file is: sluice://HOST:PORT/EXPORT/PATH, as a protocol entry of an RSE makes it."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import urllib.parse

SCHEME = "sluice"


def components(path: str) -> tuple[str, ...]:
    """Of a path; empty ones and "." are left out. ValueError for one with ".."."""
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise ValueError(f"{path}: a path with '..' is refused; correct the prefix or the path of the replica")
    return parts


def path_of(url: str, export: str) -> tuple[str, ...]:
    """The components of EXPORT/PATH. ValueError where the URL is of another scheme or another export."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme != SCHEME:
        raise ValueError(f"{url}: not a sluice:// URL; give the RSE a protocol entry with the scheme sluice")
    # A name may hold '?', '#' and '%': Rucio joins URLs without quoting, so nothing is unquoted here.
    parts = components(rest.partition("/")[2])
    if not parts or parts[0] != export:
        raise ValueError(f"{url}: not in the export {export!r}; let the prefix of the RSE's protocol entry begin with "
                         f"/{export}/, or correct its attribute sluice_export")  # fmt: skip
    if len(parts) < 2:
        raise ValueError(f"{url}: names the export itself, not a file in it")
    return parts


def host_of(directory: str) -> str:
    """What Rucio keeps as `external_host` of a request: which node ordered its transfer."""
    return f"{SCHEME}:{directory}"


def directory_of(host: str) -> str:
    """The directory of that node. ValueError where another transfertool wrote the host."""
    kind, separator, directory = (host or "").partition(":")
    if kind != SCHEME or not separator or not directory.startswith("/"):
        raise ValueError(f"{host}: not the host of a Sluice node; it looks like {SCHEME}:/etc/sluice")
    return urllib.parse.unquote(directory)
