"""Every diagnostic code and its name, for all tiers: a code is never reused for anything else."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

NAMES: Mapping[str, str] = MappingProxyType(
    {
        # 1xx: the text of a contract
        "SHP101": "contract-syntax",
        "SHP102": "unknown-dim",
        "SHP103": "loose-dim",
        "SHP104": "pack-drift",
        # 2xx: what crosses a boundary
        "SHP201": "wrong-owner",
        "SHP202": "wrong-phase",
        "SHP203": "idle-differs",
        "SHP204": "pair-mismatch",
        "SHP205": "wrong-class",
        "SHP206": "broken-invariant",
        "SHP207": "wrong-dtype",
        # 3xx: owners
        "SHP301": "owners-meet",
        "SHP302": "odd-one-out",
        "SHP303": "rows-meet",
        "SHP304": "dtype-owner",
        "SHP305": "vocab-domain",
        "SHP306": "index-as-count",
        "SHP307": "index-domain",
        # 4xx: graph buffers
        "SHP401": "buffer-capacity",
        "SHP402": "silent-copy-guard",
        "SHP403": "two-formulae",
        # 9xx: the tool
        "SHP901": "internal-error",
        "SHP902": "unused-suppression",
        "SHP903": "unreadable-file",
    }
)
