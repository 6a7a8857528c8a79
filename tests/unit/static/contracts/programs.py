"""Programs with a contract each: what the decorator refuses, with its code, and what it takes."""

from __future__ import annotations

HEAD = """
from dataclasses import dataclass
from collections.abc import Iterator
from typing import Annotated, Optional, Self
import numpy as np
import jaxtyping as jt
from jaxtyping import Float, Int64
from torch import Tensor
import shapecheck
import torch
from shapecheck import Dims, carrier, contract, dtype, graph_buffers, ids, indexes, phase

def first(x): ...

Rows = Float[Tensor, "bs draft_hidden"]
Phased = Annotated[Int64[Tensor, "bs"], phase("decode")]
Phases = Phased | Annotated[Int64[Tensor, "bs topk"], phase("extend")]

@carrier
@dataclass
class State:
    states: Float[Tensor, "bs draft_hidden"]
    ids: "Int64[Tensor, 'bs topk'] | None"

@dataclass
class Plain:
    states: Float[Tensor, "bs draft_hidden"]

class Base:
    def __init__(self, dims: Dims) -> None:
        self.dims = dims
"""
METHOD = "class Worker(Base):\n    @contract(phase='decode')\n    def step(self, {}: ...\n"
CLASS = "@carrier\n@dataclass\nclass Batch:\n    {}\n"

MARKED = METHOD.format('x: Annotated[Int64[Tensor, "bs"], {}], y: Rows)')
UNION = (
    "@carrier\n@dataclass\nclass Marked:\n"
    "    last: Annotated[Int64[Tensor, 'bs'], indexes('tokens')]\n"
    "@carrier\n@dataclass\nclass Ragged:\n"
    "    x: Rows\n    y: Float[Tensor, 'tokens']\n"
)

# One fault each: the program, and the code that both say.
REFUSED = {
    "spaces": (METHOD.format('x: Float[Tensor, "bs num_steps + 1"])'), "SHP101"),
    "ellipsis": (METHOD.format('x: Float[Tensor, "... draft_hidden"])'), "SHP101"),
    "variadic": (METHOD.format('x: Float[Tensor, "*bs topk"])'), "SHP101"),
    "anonymous": (METHOD.format('x: Float[Tensor, "_ topk"])'), "SHP101"),
    "attribute": (METHOD.format('x: Float[Tensor, "bs self.k"])'), "SHP101"),
    "quoted": (METHOD.format("x: \"Float[Tensor, 'bs*']\")"), "SHP101"),
    "array of another library": (METHOD.format('x: Float[np.ndarray, "bs"])'), "SHP101"),
    "tensor and number": (METHOD.format("x: Rows | int) -> Rows"), "SHP101"),
    "record with tensors": (METHOD.format("x: Plain) -> Rows"), "SHP101"),
    "keywords": (METHOD.format("x: Rows, **more: Rows) -> Rows"), "SHP101"),
    "no dataclass": ("@carrier\nclass Batch:\n    x: Float[Tensor, 'bs']\n", "SHP101"),
    "mark below": ("@dataclass\n@carrier\nclass Batch:\n    x: Float[Tensor, 'bs']\n", "SHP101"),
    "an index of an axis that no tensor has": (
        METHOD.format('x: Annotated[Int64[Tensor, "bs"], indexes("tokens")], y: Rows)'),
        "SHP103",
    ),
    "an index of an axis that only the result has": (
        METHOD.format(
            'x: Annotated[Int64[Tensor, "bs"], indexes("tokens")], y: Rows)'
            ' -> Float[Tensor, "tokens"]'
        ),
        "SHP103",
    ),
    "an index of an axis that another arm has": (
        UNION + METHOD.format("x: Marked | Ragged, y: Rows)"),
        "SHP103",
    ),
    "an axis of Dims without Dims that only the result has": (
        "@contract\ndef f(x: Annotated[Int64[Tensor, 'bs'], indexes('req_rows')],"
        " y: Int64[Tensor, 'bs']) -> Int64[Tensor, 'req_rows']: ...\n",
        "SHP103",
    ),
    **{
        f"mark: {mark}": (MARKED.format(mark), code)
        for mark, code in {
            'indexes("bs topk")': "SHP101",
            'indexes("")': "SHP101",
            'indexes("bs*")': "SHP101",
            'indexes("...")': "SHP101",
            'indexes("req_row")': "SHP102",
            'indexes("bs*top_k")': "SHP102",
            'indexes("bs", pad=0)': "SHP101",
            'indexes("bs", pad="x")': "SHP101",
            'indexes("bs", pad=True)': "SHP101",
            'indexes("bs", pad=-9223372036854775809)': "SHP101",
            'indexes("bs", -1)': "SHP101",
            'indexes("bs", pd=-1)': "SHP101",
            "indexes()": "SHP101",
            "indexes(3)": "SHP101",
            "indexes": "SHP101",
            'ids("x")': "SHP101",
            'ids("")': "SHP101",
            "ids()": "SHP101",
            'ids("target", -1)': "SHP101",
            'ids("target", pad=1)': "SHP101",
            'ids("target", padding=-1)': "SHP101",
            'dtype("both")': "SHP101",
            'phase("")': "SHP101",
            "phase(3)": "SHP101",
            'phase(["a"])': "SHP101",
            'phase(b"a")': "SHP101",
            'phase("decode"), phase("extend")': "SHP101",
            "3": "SHP101",
            "-1": "SHP101",
            '["a"]': "SHP101",
            '("a",)': "SHP101",
            "int": "SHP101",
            "print": "SHP101",
            "Tensor": "SHP101",
            "torch.int64": "SHP101",
            "np.int64": "SHP101",
            "Plain": "SHP101",
            "first": "SHP101",
            'ids("draft", pad=-2**70)': "SHP101",
            'ids("draft", pad=-(1 << 63) - 1)': "SHP101",
            'indexes("bs", pad=4 * 2)': "SHP101",
            'ids("target"), ids("draft")': "SHP101",
            'ids("target"), indexes("req_rows")': "SHP101",
            'indexes("req_rows"), indexes("bs")': "SHP101",
            'indexes("bs"), indexes("bs", pad=-1)': "SHP101",
            'dtype("target"), dtype("draft")': "SHP101",
        }.items()
    },
    **{
        f"a mark around phases: {kind}": (
            METHOD.format(f'x: Annotated[{kind}, indexes("bs")], y: Rows)'),
            "SHP101",
        )
        for kind in ("Phased | None", "Optional[Phased]", "list[Phased]", "Phases")
    },
    **{
        f"another phase: {place}": (METHOD.format(place), "SHP101")
        for place in (
            'x: Annotated[Rows, phase("extend")], y: Rows)',
            'x: Annotated[Rows, phase("extend")] | None, y: Rows)',
            'x: list[Annotated[Rows, phase("extend")]], y: Rows)',
            'x: tuple[Annotated[Rows, phase("extend")], Rows])',
            'y: Rows) -> Annotated[Rows, phase("extend")]',
            "y: Rows, x: \"Annotated[Rows, phase('extend')]\")",
        )
    },
    "another phase in a field": (
        CLASS.format('x: Annotated[Rows, phase("extend")]\n    y: Rows')
        + METHOD.format("batch: Batch)"),
        "SHP101",
    ),
    "a phase twice": (
        METHOD.format("x: Phased | Annotated[Rows, phase('decode')], y: Rows)"),
        "SHP101",
    ),
    "a phase twice in a field": (
        CLASS.format("x: Phased | Annotated[Rows, phase('decode')]\n    y: Rows"),
        "SHP101",
    ),
    "a carrier with a phase beside one without": (
        UNION + METHOD.format("x: Annotated[State, phase('decode')] | Ragged, y: Rows)"),
        "SHP101",
    ),
    "a mark in a class that is no contract": (
        "class K:\n    V = Annotated[Int64[Tensor, 'bs'], ids('drft')]\n",
        "SHP101",
    ),
    "a mark in a class in a class": (
        "class K:\n    class L:\n        V: object = Annotated[Rows, phase(3)]\n",
        "SHP101",
    ),
    "a mark of floats": (
        METHOD.format('x: Annotated[Float[Tensor, "bs"], indexes("req_rows")], y: Rows)'),
        "SHP101",
    ),
    **{
        f"a mark beside a dtype: {marks}": (
            METHOD.format(f'x: Annotated[jt.Shaped[Tensor, "bs"], {marks}], y: Rows)'),
            "SHP101",
        )
        for marks in (
            'dtype("draft"), indexes("bs")',
            'indexes("bs", pad=-1), dtype("draft")',
            'ids("target"), dtype("target")',
        )
    },
    "a mark of truths": (
        METHOD.format('x: Annotated[jt.Bool[Tensor, "bs"], ids("target")], y: Rows)'),
        "SHP101",
    ),
    "a mark of no tensor": (
        METHOD.format('x: Annotated[int, indexes("req_rows")], y: Rows) -> Rows'),
        "SHP101",
    ),
    "a mark of a carrier": (
        METHOD.format('x: Annotated[State, ids("target")], y: Rows)'),
        "SHP101",
    ),
    "a mark behind a name": (
        'Last = Annotated[Int64[Tensor, "bs"], indexes("bs", pad=1)]\n'
        + METHOD.format("x: Last, y: Rows)"),
        "SHP101",
    ),
    "a mark behind another name": (
        "from shapecheck import indexes as along\n" + MARKED.format('along("bs topk")'),
        "SHP101",
    ),
    "a quoted mark": (
        METHOD.format("x: \"Annotated[Int64[Tensor, 'bs'], ids('x')]\", y: Rows)"),
        "SHP101",
    ),
    "a mark in a field": (
        CLASS.format("x: Annotated[Int64[Tensor, 'bs'], indexes('bs', topk=3)]"),
        "SHP101",
    ),
    "two marks, one behind a name": (
        'Last = Annotated[Int64[Tensor, "bs"], ids("draft")]\n'
        + METHOD.format('x: Annotated[Last | None, ids("target")], y: Rows)'),
        "SHP101",
    ),
    "typo": (METHOD.format('x: Float[Tensor, "bs draft_hiden"], y: Rows)'), "SHP102"),
    "typo in a field": (CLASS.format('x: Float[Tensor, "bs draft_hiden"]'), "SHP102"),
    "typo in a buffer": (
        "@graph_buffers\n@dataclass\nclass B:\n    x: jt.Float[Tensor, 'padded_bss']\n",
        "SHP102",
    ),
    "unknown": (METHOD.format('x: Float[Tensor, "bs flavour"], y: Rows)'), "SHP102"),
    "typo in a product": (METHOD.format('x: Float[Tensor, "bs*top_k"], y: Rows)'), "SHP102"),
    "once": (METHOD.format('x: Float[Tensor, "bs topk"])'), "SHP103"),
    "once beside an alias": (
        METHOD.format('x: Rows, y: Rows) -> Float[Tensor, "tokens"]'),
        "SHP103",
    ),
    "once in a carrier": (
        CLASS.format('x: Float[Tensor, "tokens topk"]') + METHOD.format("batch: Batch, x: State)"),
        "SHP103",
    ),
    "once in what is yielded": (
        "class Worker(Base):\n    @contract\n    def f(self) -> Iterator[Rows]:\n        yield\n",
        "SHP103",
    ),
    "no tensor": (METHOD.format("x: int, y: Optional[str] = None)"), "SHP103"),
    "no Dims in reach": ('@contract\ndef f(x: Rows) -> Float[Tensor, "bs"]: ...\n', "SHP103"),
    "static": (
        "class W(Base):\n    @staticmethod\n    @contract\n"
        "    def f(x: Rows, y: Float[Tensor, 'bs']): ...\n",
        "SHP103",
    ),
}

HELD = {
    "twice": METHOD.format("x: Rows) -> Rows"),
    "argument and carrier": METHOD.format('x: Float[Tensor, "bs topk"], state: "State")'),
    "carrier alone": METHOD.format("state: State | None = None)"),
    "list": METHOD.format('x: list[Float[Tensor, "tokens topk"]])'),
    "star": METHOD.format('*x: Float[Tensor, "tokens topk"])'),
    "tuple": METHOD.format('x: tuple[Float[Tensor, "tokens"], Int64[Tensor, "tokens"]])'),
    "empty brackets": METHOD.format("x: Rows, y: tuple[()], z: 'Optional[str]' = None) -> Rows"),
    "dims parameter": (
        '@contract\ndef f(x: Rows, dims: "Dims | None") -> Float[Tensor, "bs"]: ...\n'
    ),
    "own carrier": CLASS.format(
        'x: Float[Tensor, "bs"]\n    y: Rows\n'
        "    @contract\n    def merge(self, other: Self) -> 'Batch': ..."
    ),
    "an index of an axis that one tensor has": METHOD.format(
        'x: Annotated[Int64[Tensor, "bs"], indexes("tokens")], y: Rows, z: Float[Tensor, "tokens"])'
    ),
    "an index in the result of an axis that an argument has": METHOD.format(
        'x: Float[Tensor, "tokens"], y: Rows) -> Annotated[Int64[Tensor, "bs"], indexes("tokens")]'
    ),
    "an index in one arm of an axis outside": UNION
    + METHOD.format('x: Marked | State, y: Rows, z: Float[Tensor, "tokens"])'),
    "ids without Dims": (
        "@contract\ndef f(x: Annotated[Int64[Tensor, 'bs'], ids('draft')],"
        " y: Float[Tensor, 'bs draft_vocab']): ...\n"
    ),
    "ids alone without Dims": (
        "@contract\ndef f(x: Annotated[Int64[Tensor, 'bs'], ids('draft')],"
        " y: Int64[Tensor, 'bs']): ...\n"
    ),
    "an index without Dims of an axis that no tensor has": (
        "@contract\ndef f(x: Annotated[Int64[Tensor, 'bs'], indexes('req_rows')],"
        " y: Int64[Tensor, 'bs']): ...\n"
    ),
    "a carrier that is marked, without Dims": CLASS.format(
        "x: Annotated[Int64[Tensor, 'bs'], indexes('req_rows')]\n    y: Int64[Tensor, 'bs']"
    )
    + "@contract\ndef f(x: Batch): ...\n",
    "marks that say the same": MARKED.format(
        'indexes("bs*topk", pad=-1), "for readers", indexes("topk*bs", pad=-1)'
    ),
    "ids as an index": MARKED.format('ids("draft"), indexes("draft_vocab")'),
    "a mark of an alternative": METHOD.format(
        'x: Annotated[Annotated[Rows, phase("decode")], dtype("draft")], y: Rows)'
    ),
    "a mark of a list": METHOD.format(
        'x: Annotated[list[Int64[Tensor, "bs"]], indexes(axis="bs")], y: Rows)'
    ),
    "a mark of any dtype": METHOD.format(
        'x: Annotated[jt.Shaped[Tensor, "bs"] | None, ids("draft", pad=-1)], y: Rows)'
    ),
    "declared": 'shapecheck.declare("made_here", owner="draft")\n'
    + METHOD.format('x: Float[Tensor, "bs made_here"], y: Rows)'),
    "phases": CLASS.format(
        'x: (Annotated[Rows, phase("decode"), dtype("draft")]\n'
        '        | Annotated[Float[Tensor, "tokens"], phase("extend")])\n    y: Rows'
    )
    + METHOD.format("batch: Batch)"),
    "texts among the marks": MARKED.format('"a" "b", f"{first}", __name__, "c", ids("draft")'),
    "arithmetic in a pad": MARKED.format('ids("draft", pad=-2**62), ids("draft", pad=-(1 << 62))'),
    "one phase, the contract's": METHOD.format(
        'x: Annotated[Rows, phase("decode")] | None, y: tuple[Annotated[Rows, phase("decode")]])'
        ' -> list[Annotated[Rows, phase("decode")]]'
    ),
    "a mark in an alternative": METHOD.format(
        'x: Annotated[Phased, ids("draft")] | Annotated[Rows, phase("extend")], y: Rows)'
    ),
    "no contract": 'def f(x: Float[Tensor, "batch ... 3"]): ...\n',
}
