# The exhibits by id: which experiment each needs, its two panels, and how it is judged.
# SPDX-License-Identifier: Apache-2.0
from . import aliasing, fmft, hipster, mcdtp, phatpackets, tornado

ALL = {**fmft.EXHIBITS, **phatpackets.EXHIBITS, **aliasing.EXHIBITS, **tornado.EXHIBITS, **mcdtp.EXHIBITS, **hipster.EXHIBITS}
