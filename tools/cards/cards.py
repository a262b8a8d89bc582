"""./dev cards: two nodes on network cards of their own, with DPDK's real drivers.

Emulated cards: QEMU gives a virtual machine two of a kind, joined to each other, and an IOMMU; sluice-host binds them to vfio-pci
there, as on a real host. The image is made once, with mmdebstrap; the programs are put into it anew each time. DPDK's virtual
devices need no machine: they run on this host, in a network namespace of their own. All this shows that things work, never how
fast. With --on, the cases run on two ports of real cards in this host that a cable joins.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import time

import guest
import host
import tried
from places import ROOT, WORK
from vm import machine
from vm.cases import cases_of, table
from vm.machine import Failed, stopping

def in_guest(kind, arguments):
    # Beside another kind with the same driver, fewer cases will do.
    some = not arguments.kinds and kind in guest.SAME_DRIVER
    with guest.Guest(kind, arguments.mtu, arguments.bundle) as machine:
        return machine.cases("short" if arguments.short else "some" if some else "all", arguments.limit)


def on_host(kind, arguments):
    return host.virtual(kind, arguments.mtu, "short" if arguments.short else "all", arguments.limit)


def parse():
    kinds = [*guest.KINDS, *host.KINDS]
    parser = argparse.ArgumentParser(prog="./dev cards", description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(kinds)}; none: all of them")
    parser.add_argument("--on", nargs=2, metavar=("PORT_A", "PORT_B"),
                        help="PCI addresses of two ports of real cards in this host, joined by a cable; both are bound to vfio-pci")  # fmt: skip
    parser.add_argument("--name", help="with --on: what the card is called in the table, such as 'Intel E810-C, 100 GbE'")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="with --on: of the case with several (2)")
    parser.add_argument("--row", action="store_true", help="write what came out into tools/cards/tried.tsv and docs/TUTORIAL.md")
    parser.add_argument("--bundle", type=pathlib.Path, metavar="FILE",
                        help="in a virtual machine: the programs of this .tar.gz of ./dev package --bundle, without the system's libraries")  # fmt: skip
    parser.add_argument("--mtu", type=int, default=9000, help="of both nodes (9000)")
    parser.add_argument("--short", action="store_true", help="the shortest cases: both directions, a tree, a paced transfer")
    parser.add_argument("--limit", type=int, default=420, metavar="S", help="seconds for the cases of a kind (420)")
    arguments = parser.parse_args()
    wrong = [kind for kind in arguments.kinds if kind not in kinds]
    if wrong:
        parser.error(f"{wrong[0]}: no such kind; there are {', '.join(kinds)}")
    if arguments.on and (arguments.kinds or not arguments.name):
        parser.error("--on PORT_A PORT_B wants --name, and no kinds beside it")
    if arguments.bundle and not (arguments.kinds and set(arguments.kinds) <= set(guest.KINDS)):
        parser.error(f"--bundle wants kinds of cards that QEMU emulates: {', '.join(guest.KINDS)}")
    if arguments.bundle and not arguments.bundle.is_file():
        parser.error(f"{arguments.bundle}: no such file; ./dev package --bundle makes it in build/package")
    if arguments.row and arguments.short:
        parser.error("--row wants all cases, not --short")
    if os.geteuid() != 0:
        parser.error("needs root: it makes a file system, network namespaces and hugepages, and binds cards")
    return arguments


def measure(arguments):
    """What was said of each kind, as it ends: the virtual machines one after the other, the virtual devices beside them."""
    which = "short" if arguments.short else "all"
    if arguments.on:
        yield arguments.name, host.real(arguments.on, arguments.mtu, arguments.workers, which, arguments.limit)
        return
    kinds = arguments.kinds or [*guest.KINDS, *host.KINDS]
    emulated, virtual = ([kind for kind in kinds if kind in there] for there in (guest.KINDS, host.KINDS))
    if emulated:
        machine.check_packages()
        machine.make_image()
        guest.make_disk(arguments.bundle)
    machines, beside = concurrent.futures.ThreadPoolExecutor(1), concurrent.futures.ThreadPoolExecutor(1)
    try:
        kinds_of = {machines.submit(in_guest, kind, arguments): kind for kind in emulated}
        kinds_of |= {beside.submit(on_host, kind, arguments): kind for kind in virtual}
        for done in concurrent.futures.as_completed(kinds_of):
            yield kinds_of[done], done.result()
    finally:
        stopping.set()
        for pool in (machines, beside):
            pool.shutdown(cancel_futures=True)


def main():
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the virtual machine ends, too
    results, new_rows = {}, []
    begun = time.monotonic()
    try:
        for kind, said in measure(arguments):
            cases = results[kind] = cases_of(said)
            passed, skipped = (sum(case.result == result for case in cases) for result in ("pass", "skip"))
            print(f"cards: {kind}: {passed} of {len(cases) - skipped} passed, {time.monotonic() - begun:.0f} s from the start", flush=True)
            called = {"af_packet": "af_packet on veth", "af_xdp": "af_xdp on veth", "pcap": "pcap on veth", "tap": "tap"}
            name = called.get(kind, kind) if kind in host.KINDS or arguments.on else f"QEMU's {kind}"
            new_rows.append(tried.row_of(name, said, cases))
    except (Failed, subprocess.CalledProcessError) as error:
        print(f"cards: {error}", file=sys.stderr)
        return 1
    print(table(results))
    print(f"What the nodes said is in {WORK}/*/out/cases.log.")
    if arguments.row:
        tried.write(new_rows)
    good = all(cases and all(case.result != "fail" for case in cases) for cases in results.values())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
