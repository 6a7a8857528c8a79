"""The operator table against torch: tensors with distinct primes as sizes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

from shapecheck.dims.expr import Poly
from shapecheck.static.expressions import evaluate
from shapecheck.static.frames import Frame, State
from shapecheck.static.functions import call_function
from shapecheck.static.heap import Heap
from shapecheck.static.index import ModuleFacts
from shapecheck.static.machine import Machine
from shapecheck.static.operators.table import FUNCTIONS, METHODS
from shapecheck.static.project import Project
from shapecheck.static.statements import run_body
from shapecheck.static.values import DType, External, Sequence, Size, Tensor, Value

SHAPES = {
    "v": (7,),
    "x": (7, 11),
    "y": (7, 11),
    "w": (13, 11),
    "m": (11, 17),
    "t": (2, 3, 5),
    "b": (2, 5, 19),
    "one": (7, 1),
    "i": (3,),
    "ix": (7, 2),
}
INDEX = {"i", "ix"}

# Expressions over SHAPES, each run both ways.
EXPRESSIONS = """
torch.zeros(3, 5)
torch.zeros((3, 5))
torch.ones([3])
torch.empty((), dtype=torch.int64)
torch.empty(size=(3, 5))
torch.full((3, 5), 1)
torch.full((3,), 1, dtype=torch.int32)
torch.rand(3, 5)
torch.randn((3, 5))
torch.arange(7)
torch.arange(2, 7)
torch.zeros_like(x)
torch.empty_like(x, dtype=torch.int64)
x.new_zeros((3, 5))
x.new_empty(3, 5)
x.new_full((3,), 1)
torch.zeros(x.shape)
torch.zeros(x.shape[0], 3)
torch.zeros(x.size(1), 3)
torch.zeros((x.shape[-1], *v.shape))
x + y
x * 2
2 * x
x + one
x - v[:, None]
x == y
x.add(y)
torch.maximum(x, y)
torch.where(x > 0, x, y)
x.clone()
x.to(torch.float16)
x.float()
x.contiguous()
torch.softmax(x, dim=-1)
x.softmax(-1)
torch.cumsum(x, dim=0)
x.masked_fill(x > 0, 1.0)
x.sum(dim=1)
x.sum(dim=0, keepdim=True)
x.mean(-1)
torch.argmax(x, dim=-1)
x.argmax(dim=0)
t.amax(dim=1)
torch.topk(x, 3, dim=-1)
x.topk(3)
x.max(dim=1)
x.sort(dim=-1)
torch.cat([x, y])
torch.cat([x, y], dim=0)
torch.cat((x, y), dim=-1)
torch.cat([x, one], dim=1)
torch.stack([x, y])
torch.stack([x, y], dim=1)
torch.stack([x, y, x], -1)
x @ m
torch.matmul(x, m)
x.matmul(m)
torch.mm(x, m)
torch.bmm(t, b)
torch.nn.functional.linear(x, w)
torch.nn.functional.embedding(i, w)
x.view(77)
x.view(-1)
x.view(7, 11, 1)
x.reshape(11, 7)
x.reshape(-1, 7)
x.reshape((11, 7))
x.view(x.shape)
x.flatten()
t.flatten(0, 1)
t.flatten(1)
t.flatten(start_dim=1)
torch.flatten(t, 0, -2)
v.flatten()
torch.nn.functional.pad(x, (1, 2))
torch.nn.functional.pad(x, (0, 0, 2, 1))
torch.nn.functional.pad(t, (0, 1, 1, 0), value=-1.0)
one.squeeze(1)
one.squeeze(-1)
x.squeeze(0)
x.unsqueeze(0)
x.unsqueeze(-1)
x.transpose(0, 1)
torch.transpose(t, 0, 2)
t.permute(2, 0, 1)
x.t()
x.T
t.mT
one.expand(7, 3)
one.expand(-1, 3)
v.expand(3, -1)
x.repeat(2, 3)
x.repeat(2, 3, 1)
v.repeat(3, 1)
v.repeat((2, 1, 1))
torch.tile(x, (2,))
torch.tile(v, (2, 1))
x.repeat_interleave(3, dim=0)
torch.repeat_interleave(x, 3, dim=0)
x.view_as(y)
torch.gather(x, 1, ix)
x.gather(1, ix)
torch.index_select(x, 0, i)
x.index_select(1, i)
x[i]
x[:, i]
x[0]
x[:, 0]
x[None]
x[:, None]
x[..., 0]
x[:, :]
t[0, 1]
t[:, i]
x[...]
x[0, ...]
t[0, ..., 0]
t[..., 0, :]
t[i, i]
t[:, i, i]
t[i, :, i]
t[0, :, i[:2]]
t[i[:2], :, i[:2]]
t[i[:2], 0, i[:2]]
t[i[:2], :, 0]
t[0, i[:2]]
t[i.sum(), :, i[:2]]
t[i, None, i]
t[i[:, None], i]
x[ix, 0]
x[x > 0]
v @ v
v @ m.new_zeros(7, 3)
x @ x.new_zeros(11)
t @ m.new_zeros(5, 3)
x @ x.new_zeros(4, 11, 3)
one + one
x.squeeze() + one
t.T
t.any(dim=1)
(x > 0).all()
torch.isnan(x)
torch.logical_not(x)
i.exp()
i.logsumexp(0)
(x > 0).clamp(min=0)
(x > 0) * 2
i * 0.5
i / 2
torch.div(i, 2)
torch.zeros(2, *x.shape)
torch.zeros(2, *x.shape[1:])
torch.zeros(2, *x.squeeze().shape)
x.view([1, *x.shape])
t.reshape(-1, *t.shape[-1:])
x.detach()
x.numel()
x.chunk(2, dim=1)
torch.tensor([1, 2, 3])
torch.logical_and(x, y)
torch.nn.functional.silu(x)
torch.nn.functional.one_hot(i, 5)
torch.multinomial(x, 2)
torch.flip(x, [0])
torch.sort(x)
torch.cumsum(v, 0)
x.t().contiguous()
x.any(dim=1)
torch.logsumexp(x, dim=1)
torch.norm(x, dim=1)
torch.tril(x)
torch.clamp(x, min=0)
x.copy_(y)
""".strip().splitlines()


def frame() -> Frame:
    machine = Machine(
        Project(Path("/nonexistent")), run_body, lambda *_: None, evaluate, call_function
    )
    module = ModuleFacts("case", "case.py", False, 1)
    env: dict[str, Value] = {
        name: Tensor(tuple(Size(Poly.constant(size)) for size in shape))
        for name, shape in SHAPES.items()
    }
    env["torch"] = External("torch")
    return Frame(machine, module, None, None, State(env, Heap()))


def truth(expression: str) -> object:
    names: dict[str, object] = {
        name: torch.zeros(shape, dtype=torch.int64) if name in INDEX else torch.ones(shape)
        for name, shape in SHAPES.items()
    }
    names["torch"] = torch
    return eval(expression, names)  # the expressions are this file's own


def assert_agrees(value: Value, truth: object, expression: str) -> None:
    if isinstance(truth, tuple | list) and isinstance(value, Sequence):
        assert len(value.items) == len(truth), expression
        for item, one in zip(value.items, truth, strict=True):
            assert_agrees(item, one, expression)
    elif isinstance(value, Tensor):
        assert isinstance(truth, torch.Tensor), expression
        if value.dims is not None:
            assert len(value.dims) == truth.ndim, expression
            for axis, size in zip(value.dims, truth.shape, strict=True):
                assert axis is None or axis.poly.as_int() == size, expression
        elif value.last is not None:
            assert value.last.poly.as_int() == truth.shape[-1], expression
        if isinstance(value.dtype, DType) and value.dtype.name:
            assert str(truth.dtype) == f"torch.{value.dtype.name}", expression
    elif isinstance(value, Size):
        assert value.poly.as_int() == truth, expression


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_rule_agrees_with_torch(expression: str) -> None:
    value = evaluate(frame(), ast.parse(expression, mode="eval").body)
    assert_agrees(value, truth(expression), expression)


def test_most_expressions_get_a_whole_shape() -> None:
    whole = 0
    for expression in EXPRESSIONS:
        value = evaluate(frame(), ast.parse(expression, mode="eval").body)
        first = value.items[0] if isinstance(value, Sequence) and value.items else value
        if isinstance(first, Tensor) and first.dims is not None and None not in first.dims:
            whole += 1
    assert whole >= 0.75 * len(EXPRESSIONS)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_exists(name: str) -> None:
    homes = (torch, torch.nn.functional, torch.special)
    assert any(hasattr(home, name) for home in homes)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_exists(name: str) -> None:
    assert hasattr(torch.Tensor, name) or name in ("npu", "xpu", "musa")
