"""The transfertool and its status reports, as rucio.transfertool.transfertool asks for them."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import datetime
import logging
from typing import Any, Optional

import sluice
from rucio.common.config import config_get_bool, config_get_int
from rucio.core.request import get_transfer_error
from rucio.db.sqla.constants import RequestState
from rucio.transfertool.transfertool import TransferStatusReport, Transfertool, TransferToolBuilder
from sluice import api

from . import grouping, node, outcome
from .places import SCHEME, components, directory_of, host_of, path_of

NODE, EXPORT = "sluice_node", "sluice_export"  # attributes of an RSE
_REASON_MAX = 3000  # characters of the column err_msg are 4000


class SluiceStatusReport(TransferStatusReport):
    """How one request stands. Before the end of its session there is nothing to update."""

    supported_db_fields = ["state", "external_id", "started_at", "transferred_at", "err_msg", "attributes"]

    def __init__(self, request_id: str, request: dict[str, Any], external_id: str, state: Optional[RequestState],
                 reason: Optional[str] = None, in_the_way: bool = False, session: Optional[api.Session] = None) -> None:  # fmt: skip
        super().__init__(request_id, request=request)
        self._of, self._reason, self._in_the_way, self._session = request, reason, in_the_way, session
        self._id, self._final = external_id, state
        self.external_id = self.started_at = self.transferred_at = self.err_msg = self.attributes = None

    def __str__(self) -> str:
        return f"session {self._id}"

    def initialize(self, session: Any, logger: Any = logging.log) -> None:
        if self._final is None:
            return
        self.state, self.external_id = self._final, self._id
        if self._session is not None:
            begun_s = self._session.started_unix_ns / 1e9
            moving_s = self._session.elapsed_s - self._session.data_elapsed_s
            self.started_at = _utc(begun_s + max(moving_s, 0))
            self.transferred_at = _utc(begun_s + self._session.elapsed_s)
        if self._reason:
            # Of a lost transfer Rucio's own words would speak of FTS.
            self.err_msg = get_transfer_error(RequestState.FAILED, self._reason[:_REASON_MAX])
        if self._in_the_way and config_get_bool("transfers", "overwrite_corrupted_files", default=False, session=session):
            self.attributes = {**(self._of.get("attributes") or {}), "overwrite": True}

    def get_monitor_msg_fields(self, session: Any, logger: Any = logging.log) -> dict[str, Any]:
        self.ensure_initialized(session, logger)
        return {
            "protocol": SCHEME,
            "transfer_link": f"{self._of.get('external_host')}#{self._id}",
            "reason": self._reason,
            "src-rse-id": self._of.get("source_rse_id"),
            "dst-url": self._of.get("dest_url"),
            "started_at": self.started_at,
            "transferred_at": self.transferred_at,
        }


class SluiceTransfertool(Transfertool):
    """external_host names the node that orders: "sluice:DIRECTORY". An external id is that of a session there."""

    external_name = SCHEME
    required_rse_attrs = (NODE, EXPORT)
    supported_schemes = {SCHEME}

    def __init__(self, external_host: str, logger: Any = logging.log) -> None:
        super().__init__(external_host or host_of(node.configured()), logger)
        self._node = node.node_in(directory_of(self.external_host))

    @classmethod
    def submission_builder_for_path(cls, transfer_path: list[Any], logger: Any = logging.log) -> tuple[list[Any], Optional[TransferToolBuilder]]:
        hop = transfer_path[0]
        problem = cls._problem_of(hop)
        if problem:
            logger(logging.WARNING, "Sluice cannot move %s: %s", hop, problem)
            return [], None
        return [hop], TransferToolBuilder(cls, external_host=host_of(node.configured()))

    @classmethod
    def _problem_of(cls, hop: Any) -> Optional[str]:
        if not cls.can_perform_transfer(hop.src.rse, hop.dst.rse):
            return f"each of its two RSEs needs the attributes {NODE} and {EXPORT}"
        if hop.src.rse.attributes[NODE] == hop.dst.rse.attributes[NODE]:
            return f"both RSEs are of the node {hop.src.rse.attributes[NODE]}; Sluice moves files between two nodes"
        try:
            _file_of(hop)
        except ValueError as error:
            return str(error)
        return None

    def group_into_submit_jobs(self, transfer_paths: Any) -> list[dict[str, Any]]:
        files_max = config_get_int(SCHEME, "files_per_session", default=grouping.TOLD_MAX, raise_exception=False)
        jobs = grouping.group((_file_of(path[0]) for path in transfer_paths), files_max)
        return [{"transfers": [file.transfer for file in job.files], "job_params": job.order()} for job in jobs]

    def submit(self, transfers: Any, job_params: dict[str, Any], timeout: Optional[int] = None) -> str:
        try:
            return node.order(self._node, job_params, timeout)
        except sluice.SluiceError as error:
            raise node.raised(error) from None

    def bulk_query(self, requests_by_eid: Any, timeout: Optional[int] = None) -> dict[str, Any]:
        return {eid: self._reports(eid, requests) for eid, requests in requests_by_eid.items()}

    def query(self, transfer_ids: Any, details: bool = False, timeout: Optional[int] = None) -> dict[str, str]:
        """The word for the state of each session, "unknown" of one that the node does not know."""
        words = {}
        for eid in transfer_ids:
            session = self._session(eid)
            words[eid] = "unknown" if session is None else str(sluice.State.of(session))
        return words

    def _session(self, eid: str) -> Optional[api.Session]:
        """None: the node has forgotten it, or never knew it."""
        try:
            return self._node.session(eid).show()
        except sluice.SluiceError as error:
            if error.code == node.USAGE:
                return None
            raise node.raised(error) from None

    def _reports(self, eid: str, requests: dict[str, Any]) -> dict[str, SluiceStatusReport]:
        session = self._session(eid)
        if session is None:
            reason = f"the node that ordered it knows no session {eid} any more; what has arrived is found there and kept"
            return {id: SluiceStatusReport(id, request, eid, RequestState.LOST, reason) for id, request in requests.items()}
        end, reports = node.end_of(session), {}
        for id, request in requests.items():
            found = self._outcome(session, end, request)
            state = {outcome.Verdict.DONE: RequestState.DONE, outcome.Verdict.FAILED: RequestState.FAILED}.get(found.verdict)
            reports[id] = SluiceStatusReport(id, request, eid, state, found.reason, found.in_the_way, session)
        return reports

    def _outcome(self, session: api.Session, end: outcome.Ended, request: dict[str, Any]) -> outcome.Outcome:
        path = "/".join(components(request["dest_url"].partition("://")[2].partition("/")[2]))
        found = outcome.of_file(end, path)
        if found.verdict is not outcome.Verdict.DONE:
            return found
        try:
            there = "" if session.direction == "get" else session.peer
            return outcome.of_size(path, node.size_at(self._node, there, path), request.get("bytes"))
        except sluice.SluiceError as error:
            if node.passing(error):
                return outcome.PENDING  # its size is asked for again by the next poll
            return outcome.Outcome(outcome.Verdict.FAILED, f"{path}: its size cannot be compared: {error}")

    def cancel(self, transfer_ids: Any, timeout: Optional[int] = None) -> bool:
        for eid in transfer_ids:
            try:
                self._node.session(eid).cancel()
            except sluice.SluiceError as error:
                if error.code != node.USAGE:  # it has ended already, or nobody knows it: nothing is left to cancel
                    raise node.raised(error) from None
        return True

    def update_priority(self, transfer_id: str, priority: int, timeout: Optional[int] = None) -> dict[str, str]:
        """Of a session that waits. A node refuses it where the queue is another node's; Rucio logs `http_message`."""
        place = grouping.queue_priority(priority)
        try:
            self._node.session(transfer_id).prioritize(place)
        except sluice.SluiceError as error:
            self.logger(logging.WARNING, "Priority of session %s stays: %s", transfer_id, error)
            return {"http_message": str(error)}
        return {"http_message": f"{place} in the queue"}


def _file_of(hop: Any) -> grouping.File:
    """ValueError where a URL is none of the export that its RSE says."""
    source, destination = hop.src.rse.attributes, hop.dst.rse.attributes
    return grouping.File(
        source_node=source[NODE],
        source=path_of(hop.source_url(hop.src), source[EXPORT]),
        destination_node=destination[NODE],
        destination=path_of(hop.dest_url, destination[EXPORT]),
        size=hop.rws.byte_count or 0,
        overwrite=_yes(hop.rws.attributes.get("overwrite")) or _yes(destination.get("overwrite")),
        priority=grouping.queue_priority(hop.rws.priority),
        rule=hop.rws.rule_id,
        source_floor=_floor(hop.source_protocol(hop.src)),
        destination_floor=_floor(hop.dest_protocol()),
        transfer=hop,
    )


def _yes(value: Any) -> bool:
    """Of an attribute, which may be a text."""
    return str(value).lower() in ("true", "1", "yes")


def _floor(protocol: Any) -> int:
    return max(len(components(protocol.attributes["prefix"])), 1)


def _utc(seconds: float) -> datetime.datetime:
    """As Rucio keeps times: of UTC, without a zone."""
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).replace(tzinfo=None)
