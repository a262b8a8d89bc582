"""Makes the transfertool known to the Rucio of this process. Rucio has no plug-in point for it."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

from .places import directory_of


def register() -> None:
    """Before a daemon's main function runs. Once more does no harm."""
    from rucio.core import transfer
    from rucio.transfertool.fts3 import FTS3Transfertool

    from .transfertool import SluiceTransfertool

    transfer.TRANSFERTOOL_CLASSES_BY_NAME[SluiceTransfertool.external_name] = SluiceTransfertool

    def of_host(external_host: str, **more: Any) -> Any:
        """cancel_transfers and update_transfer_priority take every transfer for one of FTS (Rucio 41)."""
        try:
            directory_of(external_host)
        except ValueError:
            return FTS3Transfertool(external_host=external_host, **more)
        return SluiceTransfertool(external_host=external_host)

    transfer.FTS3Transfertool = of_host
