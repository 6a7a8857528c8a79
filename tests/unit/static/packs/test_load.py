"""A pack is checked word by word when it is read; each refusal says where and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapecheck.static.packs.load import load_pack
from shapecheck.static.packs.model import Name, PackError
from tests.unit.static.packs.conftest import WritePack

STUB = '''\
class Worker:
    """What the stub is about."""

    model_config: Annotated[ModelConfig, owner("draft")]
    hidden_states: (
        Annotated[Float[Tensor, "tokens draft_hidden"], phase("decode")]
        | Annotated[Float[Tensor, "tokens 3*target_hidden"], phase("extend")]
        | None
    )
    plain: int

    @phase("extend")
    def extend(
        self, rows: Int32[Tensor, "bs"], other: int
    ) -> Annotated[int, dim("num_steps+1")]: ...


@owner("target")
class Runner: ...


def verify(predicts: Int32[Tensor, "bs*num_draft_tokens"]): ...
'''
PHASES = 'package = "engine"\nphases = ["decode", "extend"]\n'


def test_a_stub_is_read_in_whole(write_pack: WritePack) -> None:
    pack = load_pack(write_pack(STUB, PHASES), "pack")
    said = {str(name): promise for name, promise in pack.promises.items()}
    assert sorted(said) == [
        "engine.worker:Runner",
        "engine.worker:Worker.extend(return)",
        "engine.worker:Worker.extend(rows)",
        "engine.worker:Worker.hidden_states",
        "engine.worker:Worker.model_config",
        "engine.worker:verify(predicts)",
    ]
    assert said["engine.worker:Worker.model_config"].owner == "draft"
    assert said["engine.worker:Runner"].owner == "target"
    hidden = said["engine.worker:Worker.hidden_states"]
    assert [case.phase for case in hidden.cases] == ["decode", "extend"]
    assert [str(case.axes[-1]) for case in hidden.cases if case.axes] == [
        "draft_hidden",
        "3*target_hidden",
    ]
    assert said["engine.worker:Worker.extend(rows)"].cases[0].dtype == "int32"
    assert str(said["engine.worker:Worker.extend(return)"].cases[0].size) == "num_steps+1"
    assert pack.phases == {Name("engine.worker", "Worker", "extend"): "extend"}
    # A name without a contract is still looked up in the code.
    assert Name("engine.worker", "Worker", "plain") in pack.spans


def test_owners_of_the_manifest_keep_their_line(write_pack: WritePack) -> None:
    text = 'package = "engine"\n\n[owners]\n"engine.worker:Worker.config" = "draft"\n'
    pack = load_pack(write_pack(manifest=text), "mine")
    promise = pack.promises[Name("engine.worker", "Worker", "config")]
    assert (promise.owner, promise.span.path, promise.span.line) == ("draft", "mine/pack.toml", 4)


@pytest.mark.parametrize(
    ("stub", "line", "said"),
    [
        ('class A:\n    x: Float[Tensor, "bs draft_hiden"]\n', 2, "did you mean draft_hidden"),
        ('class A:\n    x: Float[Tensor, "bs ..."]\n', 2, "write out every axis"),
        ('class A:\n    x: Annotated[C, owner("drafts")]\n', 2, "write owner('target')"),
        ('class A:\n    x: Annotated[C, owned("draft")]\n', 2, "is no mark; write one of owner"),
        ('class A:\n    x: Annotated[int, dim("bs topk")]\n', 2, "a number is one axis"),
        ('class A:\n    x: Annotated[C, owner("draft"), phase("later")]\n', 2, "under phases"),
        ('@phase("later")\ndef f(x): ...\n', 1, "list it under phases in pack.toml"),
        ("x = 3\n", 1, "a stub holds classes and functions"),
        ("class A\n", 1, "syntax error"),
    ],
)
def test_a_word_that_means_nothing_is_refused(
    write_pack: WritePack, stub: str, line: int, said: str
) -> None:
    folder = write_pack(stub)
    with pytest.raises(PackError) as caught:
        load_pack(folder, "pack")
    assert str(caught.value).startswith(f"{folder / 'engine' / 'worker.pyi'}:{line}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ("", 'package: it is required; write for example package = "sglang"'),
        ('package = "engine"\nversion = ">=1"\n', "version: no such key; did you mean versions?"),
        ('package = "engine"\nversions = "1.0"\n', "versions: '1.0' is no limit"),
        ('package = "engine"\n[owners]\n"Worker.config" = "draft"\n', "an owner is written"),
        ('package = "engine"\n[owners]\n"a:B.c" = "mine"\n', '"target" or "draft"; rewrite it'),
        ("package = engine\n", "not TOML"),
        ('package = "a-b"\n', "package: "),
    ],
)
def test_a_manifest_that_cannot_be_used_is_refused(
    write_pack: WritePack, manifest: str, said: str
) -> None:
    folder = write_pack(manifest=manifest)
    with pytest.raises(PackError) as caught:
        load_pack(folder, "pack")
    assert str(caught.value).startswith(f"{folder / 'pack.toml'}: ")
    assert said in str(caught.value)


def test_nothing_of_a_stub_is_executed(write_pack: WritePack, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    stub = f"class A:\n    def f(self):\n        open({str(mark)!r}, 'w')\n"
    load_pack(write_pack(stub), "pack")
    assert not mark.exists()


@given(text=st.text(max_size=200))
def test_any_text_is_a_pack_or_a_pack_error(text: str, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("pack")
    (folder / "pack.toml").write_text('package = "engine"\n', encoding="utf-8")
    (folder / "a.pyi").write_bytes(text.encode("utf-8", "surrogatepass"))
    said = str(folder)
    try:
        load_pack(folder, "pack")
    except PackError as error:
        said = str(error)
    assert said.startswith(str(folder))
