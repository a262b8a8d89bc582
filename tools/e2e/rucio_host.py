# Rucio without a server, on SQLite: what rucio_test.py runs in the environment where Rucio is installed. It reads a JSON
# object a line, does it with Rucio's own functions and daemons, and answers in one line.
# SPDX-License-Identifier: Apache-2.0
import json
import logging
import sys

logging.basicConfig(level=logging.INFO, stream=sys.stderr)
answers, sys.stdout = sys.stdout, sys.stderr  # whatever Rucio prints is no answer

from rucio.common.types import InternalAccount, InternalScope  # noqa: E402
from rucio.core import config, did, distance, replica, request, rse, rule, scope  # noqa: E402
from rucio.core.account_limit import set_local_account_limit  # noqa: E402
from rucio.daemons.conveyor.finisher import finisher  # noqa: E402
from rucio.daemons.conveyor.poller import poller  # noqa: E402
from rucio.daemons.conveyor.submitter import submitter  # noqa: E402
from rucio.db.sqla import models  # noqa: E402
from rucio.db.sqla import util  # noqa: E402
from rucio.db.sqla.constants import DatabaseOperationType, DIDType, RuleGrouping  # noqa: E402
from rucio.db.sqla.session import db_session, get_engine, get_session  # noqa: E402
from sluice_rucio.register import register  # noqa: E402
from sluice_rucio.transfertool import SluiceTransfertool  # noqa: E402

ROOT, SCOPE = InternalAccount("root"), InternalScope("s")
OPERATIONS = ("read", "write", "delete", "third_party_copy_read", "third_party_copy_write")


def writing():
    return db_session(DatabaseOperationType.WRITE)


def setup(rses):
    """rses: {name: [node, address, port, prefix, algorithm of paths]}."""
    models.register_models(get_engine())
    util.create_base_vo()
    util.create_root_account()
    domains = {"lan": dict.fromkeys(OPERATIONS[:3], 1), "wan": dict.fromkeys(OPERATIONS, 1)}
    with writing() as session:
        scope.add_scope(SCOPE, ROOT, session=session)
        ids = {}
        for name, (node, address, port, prefix, algorithm) in rses.items():
            ids[name] = rse.add_rse(name, session=session)
            rse.add_protocol(ids[name], {"scheme": "sluice", "hostname": address, "port": port, "prefix": prefix,
                                         "impl": "sluice_rucio.protocol.Default", "domains": domains}, session=session)  # fmt: skip
            rse.add_rse_attribute(ids[name], "sluice_node", node, session=session)
            rse.add_rse_attribute(ids[name], "sluice_export", prefix.split("/")[1], session=session)
            rse.add_rse_attribute(ids[name], "lfn2pfn_algorithm", algorithm, session=session)
            set_local_account_limit(ROOT, ids[name], -1, session=session)
        for one in ids.values():
            for other in ids.values():
                if one != other:
                    distance.add_distance(one, other, distance=1, session=session)
    return ids


def paths(name, files):
    """Where an RSE has these files: EXPORT/PATH of each."""
    from rucio.rse import rsemanager

    settings = rsemanager.get_rse_info(rse=name, vo="def")
    made = rsemanager.lfns2pfns(settings, [{"scope": "s", "name": each} for each in files], operation="read")
    return {key.partition(":")[2]: url.partition("://")[2].partition("/")[2] for key, url in made.items()}


def declare(name, dataset, sizes):
    """A dataset of these files, of which the RSE has replicas."""
    files = [{"scope": SCOPE, "name": each, "bytes": size, "adler32": "00000001"} for each, size in sizes.items()]
    with writing() as session:
        replica.add_replicas(rse.get_rse_id(name, session=session), files, ROOT, session=session)
        did.add_did(SCOPE, dataset, DIDType.DATASET, ROOT, session=session)
        did.attach_dids(SCOPE, dataset, files, ROOT, session=session)


def remove_replica(name, file):
    with writing() as session:
        session.query(models.RSEFileAssociation).filter_by(rse_id=rse.get_rse_id(name, session=session), name=file).delete()


def add_rule(dataset, to, priority=3):
    with writing() as session:
        return rule.add_rule([{"scope": SCOPE, "name": dataset}], ROOT, 1, to, RuleGrouping.DATASET, None, None, False, None,
                             priority=priority, session=session)[0]  # fmt: skip


def delete_rule(id):
    with writing() as session:
        rule.delete_rule(id, session=session)


def prioritize(id, priority):
    with writing() as session:
        rule.update_rule(id, {"priority": priority}, session=session)


def submit():
    submitter(once=True, partition_wait_time=0, transfertools=["sluice"], filter_transfertool=None)


def poll():
    poller(once=True, partition_wait_time=0, older_than=0, transfertool="sluice", filter_transfertool=None)


def finish():
    finisher(once=True, partition_wait_time=0)


def state(rule_id=None):
    """Requests, those that have ended among them, and the replicas."""
    session = get_session()()
    try:
        def told(kind):
            rows = session.query(kind).filter_by(rule_id=rule_id) if rule_id else session.query(kind)
            return [{"name": row.name, "state": row.state.name, "eid": row.external_id, "host": row.external_host,
                     "error": row.err_msg, "retry": row.retry_count, "id": row.id} for row in rows.all()]  # fmt: skip

        names = {row.id: row.rse for row in session.query(models.RSE).all()}
        replicas = {f"{names[row.rse_id]}:{row.name}": row.state.name for row in session.query(models.RSEFileAssociation).all()}
        rules = {row.id: row.state.name for row in session.query(models.ReplicationRule).all()}
        return {"requests": told(models.Request), "ended": told(models.RequestHistory), "replicas": replicas, "rules": rules}
    finally:
        session.close()


def configure(section, option, value):
    with writing() as session:
        config.set(section, option, value, session=session)


def set_attribute(name, key, value):
    with writing() as session:
        rse.add_rse_attribute(rse.get_rse_id(name, session=session), key, value, session=session)


def submit_twice(rule_id):
    """A submitter that dies between the order and the database: its requests are queued as if it had never been."""
    submit()
    with writing() as session:
        for row in session.query(models.Request).filter_by(rule_id=rule_id):
            row.state, row.external_id = request.RequestState.QUEUED, None


def forget(rule_id, external_id):
    """As if the session had been another one, of which the node has never heard."""
    with writing() as session:
        for row in session.query(models.Request).filter_by(rule_id=rule_id):
            row.external_id = external_id


def query(eids):
    return SluiceTransfertool(None).query(eids)


def protocol(name, method, url):
    from rucio.rse import rsemanager

    made = rsemanager.create_protocol(rsemanager.get_rse_info(rse=name, vo="def"), "read", "sluice")
    made.connect()
    return getattr(made, method)(url)


DEEDS = {deed.__name__: deed for deed in (setup, paths, declare, remove_replica, add_rule, delete_rule, prioritize, submit, poll, finish, state,
                                          configure, set_attribute, submit_twice, forget, query, protocol)}  # fmt: skip


def main():
    register()
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = {"answer": DEEDS[asked.pop("do")](**asked)}
        except Exception as error:  # the test tells it
            logging.exception("failed")
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, default=str), file=answers, flush=True)


main()
