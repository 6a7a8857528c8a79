"""The carriers: what crosses a phase boundary, with the width and dtype each tensor must have.

B requests   K branching   N verify width, root included   D width of the accept table
T rows of a ragged forward   L_b committed length of request b before the iteration
"""

from engine.carriers.batch import BatchRows, DraftState
from engine.carriers.draft import DraftRoots, DraftStep, DraftTree, DrawnRoots, StepRows
from engine.carriers.extend import ExtendRows, PrefillExtendInput, VerifyExtendInput
from engine.carriers.prefill import PrefillInput, PrefillOutput
from engine.carriers.verify import Emitted, TargetRows, VerifyInput, VerifyOutput, VerifyRows

__all__ = [
    "BatchRows",
    "DraftRoots",
    "DraftState",
    "DraftStep",
    "DraftTree",
    "DrawnRoots",
    "Emitted",
    "ExtendRows",
    "PrefillExtendInput",
    "PrefillInput",
    "PrefillOutput",
    "StepRows",
    "TargetRows",
    "VerifyExtendInput",
    "VerifyInput",
    "VerifyOutput",
    "VerifyRows",
]
