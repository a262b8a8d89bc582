"""A Rucio transfertool: Rucio decides which files go where, Sluice moves them (docs/RUCIO.md).

The Sluice node beside Rucio's daemons orders each transfer from the node of the source RSE to the node of the destination RSE.
Unless it is one of these two, no byte comes to it. The modules `places`, `grouping` and `outcome` need neither Rucio nor a node.
"""
# SPDX-License-Identifier: Apache-2.0
