"""Programs that double, nest or overflow at every line end in a report, never in a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapecheck.static.report import run

HEAD = (
    "import torch\n\n\ndef f(draft_config, target_config, n):\n    x = draft_config.hidden_size\n"
)
HUGE = "0x" + "f" * 6000
LINES = {
    "number squared": ["x = 3", *["x = x * x"] * 45],
    "size squared": ["x = x * x"] * 45,
    "tuple doubled": ["x = (x,)", *["x = x + x"] * 45],
    "list doubled": ["x = [x]", *["x = [*x, *x]"] * 45],
    "tuple nested": [*["x = (x, x)"] * 45, "x = x if n else 1"],
    "dict nested": [*["x = {1: x, 2: x}"] * 45, "x = x if n else 1"],
    "methods nested": ["x = n", *["x = (x.a, x.a)"] * 45, "x = x if n else 1"],
    "elements of a square": ["x = torch.zeros(x, x).flatten().shape[0]"] * 45,
    "rows repeated": ["x = torch.zeros(x, x).repeat_interleave(x, dim=0).shape[0]"] * 45,
    "long number": [
        f"y = torch.zeros(2, {HUGE}) if n == {HUGE} else torch.zeros(n, x)",
        "y = y + x",
    ],
    "work for a machine": ["a = 1 << 10**9", "b = 'a' * 10**12", "c = [i for i in range(10**12)]"],
    "many returns": [f"if n == {i}: return torch.zeros({i}, x)" for i in range(1000)],
    "attributes": ["y = n" + ".a" * 2000 + ".hidden_size"],
    "sum": ["y = x" + " + 1" * 2000],
    "odd calls": [
        "h = torch.zeros(n, x)",
        "h.view(); h.split(0); h.chunk(0); h.view(-1, -1); h // 0; x // 0; h[..., ..., None]",
        "torch.cat(); torch.cat([]); torch.stack(1); torch.full(); h.sum(dim=()); h.flatten(-5, 9)",
        "h.squeeze(99); h.transpose(); h.permute(*h); h @ h[0]; h[h, h, h]; h.shape[99]; -'a'",
        "next(*()); sorted(*()); setattr(*()); n.get_hidden_size(*()); torch.nn.Parameter(*())",
        "import functools; functools.partial(*()); functools.partial(f)(n)(n); [].append(*())",
        "torch.nn.functional.pad(h, (1,)); torch.nn.functional.pad(h, (1, 2) * 9)",
        "torch.stack([h], 9); torch.stack((), -9)",
        "torch.zeros(*n, x); torch.zeros(**n); f(*n, x); f(**{1: 2}); dict(**n); {**n}['a']",
    ],
    "newer syntax": [
        "while y := n.pop(): break",
        "match n:",
        "    case [1, *rest] if (z := rest): pass",
        "    case {'a': 1, **kw}: pass",
        "try: pass",
        "except* ValueError as error: raise",
        "[*a, (b, *c)], n.d[0] = n",
        "return [*a, {**b}, f'{c!r:>{n}} {f\"{a}\"}', (lambda *p, **k: p)(1)]",
    ],
}


@pytest.mark.parametrize("name", LINES)
def test_the_run_ends_in_a_report(name: str, tmp_path: Path) -> None:
    body = "".join(f"    {line}\n" for line in LINES[name])
    (tmp_path / "engine.py").write_text(f"{HEAD}{body}    return torch.zeros(n, x)\n")
    report = run((str(tmp_path),))
    assert not [one.message for one in report.findings]


def test_classes_and_imports_that_lead_back_to_themselves(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "import torch\nfrom b import *\nfrom b import B\nfrom . import a\nfrom .... import c\n"
        "class A(B):\n    def draft_(self):\n        self.x = self.x\n"
        "        return super().draft_() + torch.zeros(self.x, self.draft_().shape[0])\n"
        "class C(C, A): pass\n"
    )
    (tmp_path / "b.py").write_text(
        "import torch\nfrom a import A, missing\n"
        "class B(A, metaclass=type('M', (type,), {})):\n"
        "    @property\n    def draft_(self): return self.draft_\n"
        "    def run(self, target_hidden): return self.run(self.run(target_hidden))\n"
    )
    assert not run((str(tmp_path),)).findings


def test_lines_and_columns_are_those_of_an_editor(tmp_path: Path) -> None:
    """A form feed and a Unicode separator end no line; a letter of two bytes is one column."""
    text = (
        "import torch\n\x0c\nS = '\u2028\x1c'\n"
        "def f(draft_config, target_config, n):\n"
        "    'äöü'; a = torch.zeros(n, draft_config.hidden_size)\n"
        "    return torch.cat([a, torch.zeros(n, target_config.hidden_size)])\n"
    )
    for ends in ("\n", "\r\n", "\r"):
        (tmp_path / "engine.py").write_bytes(text.replace("\n", ends).encode())
        report = run((str(tmp_path),))
        spans = [one.primary for one in report.findings]
        assert [(one.line, one.column) for one in spans if one] == [(5, 31)]
        assert report.summary()["lines"] == 6
