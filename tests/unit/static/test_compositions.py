"""Compositions of operators against torch: whatever lint says of a shape or a dtype is so."""

from __future__ import annotations

import ast
import warnings

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shapecheck.static.expressions import evaluate
from tests.unit.static.test_operators import SHAPES, assert_agrees, frame, truth

# `{}` is the expression so far.
STEPS = """
{}.unsqueeze(0)
{}.unsqueeze(-1)
{}.squeeze(-1)
{}.squeeze()
{}.flatten()
{}.flatten(1)
{}.flatten(start_dim=0, end_dim=1)
{}[0]
{}[:, 0]
{}[..., 0]
{}[None]
{}[:, None]
{}[1:]
{}[:, :2]
{}[{} > 0]
{}[i * 0]
{}[i * 0, i * 0]
{}[0, :, i * 0]
{}[i * 0, 0]
{}[ix * 0]
{}.T
{}.mT
{}.transpose(-1, -2)
{}.movedim(0, -1)
{}.sum()
{}.sum(dim=(0, 1))
{}.sum(-1, keepdim=True)
{}.mean(dim=1)
{}.any(-1)
{}.all()
{}.argmax()
{}.argmax(-1)
{}.amax(0)
{}.max(-1)
{}.max(0).values
{}.logsumexp(-1, keepdim=True)
{}.topk(1)[0]
{}.sort(dim=0)[1]
{}.cumsum(-1)
{}.softmax(-1)
{}.clamp(min=0)
{}.repeat(2, 1)
{}.repeat(1, 2, 1)
{}.expand(2, *{}.shape)
{}.repeat_interleave(2, dim=0)
{}.view(-1)
{}.view(*{}.shape, 1)
{}.view({}.shape[0], -1)
{}.reshape(-1, *{}.shape[1:])
{}.chunk(2)[0]
{}.split(1, dim=-1)[0]
{}.unbind(0)[0]
{}.unflatten(0, (1, -1))
{}.to(torch.float16)
{}.long()
{} * 2
{} * 0.5
{} / 2
{} > 0
{} + {}
{} @ {}.mT
torch.matmul({}, {}.new_zeros({}.shape[-1]))
torch.bmm({}, {}.mT)
torch.where({} > 0, {}, {})
torch.stack([{}, _], dim=-1)
torch.cat([{}, _])
torch.zeros_like({})
torch.full_like({}, 2)
{}.new_zeros({}.shape)
{}.new_empty({}.shape[0], 2)
torch.zeros({}.shape[0], 4)
torch.ones(*{}.shape)
torch.arange({}.shape[0])
torch.nn.functional.pad({}, (1, 0))
torch.nn.functional.linear({}, {}.new_zeros(4, {}.shape[-1]))
torch.nn.functional.embedding(({} * 0).long(), w)
torch.nn.functional.one_hot({}.long(), 3)
{}.gather(-1, torch.zeros_like({}).long())
{}.index_select(0, i * 0)
{}.masked_fill({} > 0, 1)
{}.shape[0]
{}.size(-1)
""".strip().splitlines()


@settings(max_examples=400, deadline=None)
@given(
    start=st.sampled_from(sorted(SHAPES)),
    steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=4),
)
def test_what_is_said_of_a_composition_is_so(start: str, steps: list[str]) -> None:
    expression = start
    for step in steps:
        inner = f"({expression})" if " " in expression else expression
        expression = step.replace("{}", inner)
    assume(len(expression) < 400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = truth(expression)
        except Exception:  # torch refuses it: nothing is said of what does not run
            assume(False)
            return
    value = evaluate(frame(), ast.parse(expression, mode="eval").body)
    assert_agrees(value, found, expression)
