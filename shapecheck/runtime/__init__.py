"""The run-time tier: contracts enforced where tensors cross a phase boundary."""

from shapecheck.runtime.buffers import graph_buffers
from shapecheck.runtime.carrier import carrier
from shapecheck.runtime.decorator import contract
from shapecheck.runtime.enable import enable
from shapecheck.runtime.invariant import invariant
from shapecheck.runtime.single import check_shape
from shapecheck.runtime.stats import stats

__all__ = ["carrier", "check_shape", "contract", "enable", "graph_buffers", "invariant", "stats"]
