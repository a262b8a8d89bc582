"""The node, its counters, and what its peers say of themselves."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

from starlette.routing import Route

from .doctor import examine
from .door import Asked, call
from .errors import ConsoleError
from .messages import api_pb2 as api
from .messages import peers_pb2 as peers

_ABOUT_S = 30.0


def _sandbox(one: api.Sandbox) -> dict[str, Any]:
    return {"text": one.text, "calls": one.system_calls, "landlock": one.landlock, "refused": one.refused_calls}


def facts(node: api.NodeReply) -> dict[str, Any]:
    """The node as the pages show it."""
    exports = []
    for line in node.exports:
        name, _, more = line.partition(" ")
        path, _, mode = more.rpartition(" ")
        exports.append({"name": name, "path": path, "mode": mode})
    fallen = node.fallback if node.HasField("fallback") else None
    return {
        "name": node.name, "fingerprint": node.fingerprint, "version": node.version, "attached": node.dataplane_attached,
        "ip4": node.data_ip4, "ip6": node.data_ip6, "device": node.device, "abilities": node.device_abilities,
        "frame_bytes": node.frame_bytes_max, "workers": node.workers, "hugepages": node.hugepages, "exports": exports,
        "waits": [{"export": one.export_name, "seconds": one.waited_s, "calls": one.calls} for one in node.waits],
        "peers": [{"name": one.name, "address": one.address, "fingerprint": one.fingerprint, "offered": one.offered_fingerprint}
                  for one in node.peers],
        "address": node.control_address, "link": node.link, "crc": node.crc_variant, "metrics": node.metrics_address,
        "fallback": fallen and {"device": fallen.device, "reason": fallen.reason, "since": fallen.since_unix_ns // 1_000_000},
        "falls": node.falls, "longest_turn_ns": node.longest_turn_ns, "longest_turn": node.longest_turn,
        "sandbox": {"control": _sandbox(node.control_sandbox), "dataplane": _sandbox(node.dataplane_sandbox)},
    }  # fmt: skip


async def _node(asked: Asked) -> dict[str, Any]:
    node = await asked.upstream.node(asked.who)
    return {**facts(node), "me": {"name": asked.sign_in.name, "role": asked.sign_in.role}}


async def _counters(asked: Asked) -> dict[str, Any]:
    reply = await asked.upstream.call(asked.who, "Control/Counters", api.CountersRequest(), api.CountersReply)
    found: dict[str, list[Any]] = {}
    for one in reply.counters:  # those of several workers stand there several times
        found.setdefault(one.name, [one.name, one.unit, one.help, 0])[3] += one.value
    return {"counters": list(found.values())}


async def _about(asked: Asked) -> dict[str, Any]:
    request = peers.PeerRequest(peer=asked.word("peer"))
    answer = await asked.upstream.call(asked.who, "Peers/About", request, peers.PeerAnswer, _ABOUT_S)
    return {"software": answer.software, "clock_offset_ns": answer.clock_offset_ns, "clock_error_ns": answer.clock_error_ns,
            "round_trip_ns": answer.round_trip_ns,
            "spaces": [{"name": one.name, "size": one.size_bytes, "free": one.free_bytes} for one in answer.spaces]}  # fmt: skip


async def _me(asked: Asked) -> dict[str, Any]:
    return {"name": asked.sign_in.name, "role": asked.sign_in.role}


async def _sign_out(asked: Asked) -> dict[str, Any]:
    asked.house.sign_ins.end(asked.sign_in)
    return {}


async def _sign_ins(asked: Asked) -> dict[str, Any]:
    """One's own: where one has signed in."""
    return {"sign_ins": [{"id": one.public_id, "role": one.role, "made": one.made * 1000, "used": one.used * 1000,
                          "watching": len(one.streams), "this": one is asked.sign_in}
                         for one in asked.house.sign_ins.of(asked.who.uid)]}  # fmt: skip


async def _revoke(asked: Asked) -> dict[str, Any]:
    found = [one for one in asked.house.sign_ins.of(asked.who.uid) if one.public_id == asked.word("id")]
    if not found:
        raise ConsoleError("usage", "this sign-in has ended already")
    for one in found:
        asked.house.sign_ins.end(one)
    return {}


def routes() -> list[Route]:
    return [call("node", _node), call("counters", _counters), call("peer", _about), call("doctor", examine), call("me", _me), call("sign-out", _sign_out),
            call("sign-ins", _sign_ins), call("sign-ins/revoke", _revoke)]  # fmt: skip
