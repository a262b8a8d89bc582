# The performance lab: experiments on running nodes, with figures that can be repeated.
#
# Standard library and the harness only; matplotlib where a plot is drawn. Experiments are in
# experiments/, one file each; what they share is here.
# SPDX-License-Identifier: Apache-2.0
