"""Trace: run real code on symbolic sizes and report which named dimensions had to be equal."""

from shapecheck.symbolic.hints import Setting
from shapecheck.symbolic.report import Report
from shapecheck.symbolic.sweep import Run, sweep
from shapecheck.symbolic.tracer import Trace, trace

__all__ = ["Report", "Run", "Setting", "Trace", "sweep", "trace"]
