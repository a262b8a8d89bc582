"""`sluice doctor`, run by the console for an operator: what is well on this host and what is not.

It is run as the user of the console, who may see less than the node's owner: the command says so itself. What control has
told the page already, and what would be the console's own limits, is left out.
"""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import json
import pathlib
from typing import Any

from .door import Asked
from .errors import ConsoleError

PROGRAM = pathlib.Path(__file__).resolve().parents[3] / "bin/sluice"
_LIMIT_S = 120
_LEVELS = ("fail", "warn", "pass")
# The page asks control for these; the console's unit lets it call nobody but this host.
_OF_CONTROL = {"control", "dataplane", "peer"}
_OF_WHO_LOOKS = {"open_files", "locked_memory", "disk_speed"}
_alone = asyncio.Lock()


async def _run(node: pathlib.Path) -> str:
    try:
        process = await asyncio.create_subprocess_exec(str(PROGRAM), "--node", str(node), "doctor", "--json", stdin=asyncio.subprocess.DEVNULL,
                                                       stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)  # fmt: skip
    except OSError as error:
        raise ConsoleError("configuration", f"{PROGRAM}: {error.strerror}; install the whole package") from None
    try:
        async with asyncio.timeout(_LIMIT_S):
            said, problem = await process.communicate()
    except TimeoutError:
        raise ConsoleError("resources", f"sluice doctor did not end within {_LIMIT_S} s: run it on the host") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if not said:
        raise ConsoleError("internal", f"sluice doctor said nothing: {problem.decode(errors='replace').strip()[:500]}")
    return said.decode(errors="replace")


async def examine(asked: Asked) -> dict[str, Any]:
    if asked.who.role != "operator":
        raise ConsoleError("configuration", "the host is examined for operators of this node")
    await asked.upstream.node(asked.who)  # control judges that they still are
    if _alone.locked():
        raise ConsoleError("resources", "the host is being examined: try again", status=429)
    async with _alone:
        findings = json.loads(await _run(asked.house.settings.node))["checks"]
    is_stranger = any(one["check"] == "user" for one in findings)
    left_out = _OF_CONTROL | (_OF_WHO_LOOKS if is_stranger else set())
    kept = [one for one in findings if one["check"] not in left_out]
    kept.sort(key=lambda one: _LEVELS.index(one["level"]))
    return {"checks": [[one["level"], one["check"], one["text"], one["remedy"]] for one in kept]}
