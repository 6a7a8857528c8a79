"""Packs are chosen by package and version, whatever tells the version; a given pack has to fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from shapecheck.cli.lint import lint
from shapecheck.static.packs.choose import SHIPPED, choose_packs, find_version, shipped_packs
from shapecheck.static.packs.model import PackError
from shapecheck.static.report import run
from tests.unit.static.packs.conftest import WritePack

ENGINE = frozenset({"engine"})


def _package(root: Path, name: str, version_file: str = "", text: str = "") -> Path:
    (root / name).mkdir(parents=True)
    (root / name / "__init__.py").write_text("")
    if version_file:
        (root / name / version_file).write_text(text)
    return root


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("version.py", '__version__ = "1.2.3"\n'),
        ("_version.py", "__version__ = version = '1.2.3'\n"),
        ("__init__.py", 'import x\n__version__: str = "1.2.3"\n'),
    ],
)
def test_the_version_is_found_in_the_package(tmp_path: Path, file: str, text: str) -> None:
    root = _package(tmp_path, "engine", file, text)
    assert find_version(root, "engine", ENGINE, ()) == "1.2.3"


def test_dist_info_comes_before_the_text(tmp_path: Path) -> None:
    root = _package(tmp_path, "engine", "version.py", '__version__ = "0.0.0.dev0"\n')
    (root / "Engine-1.2.3.dist-info").mkdir()
    assert find_version(root, "engine", ENGINE, ()) == "1.2.3"


def test_a_release_says_its_version_itself(tmp_path: Path) -> None:
    root = _package(tmp_path / "some-engine-1.2.3", "engine")
    names = frozenset({"some-engine"})
    assert find_version(root, "engine", names, ("pypi:some_engine==1.2.3:engine",)) == "1.2.3"
    assert find_version(root, "engine", ENGINE, ("pypi:some_engine==1.2.3:engine",)) is None


def test_a_given_pack_outside_its_range_is_refused(tmp_path: Path, write_pack: WritePack) -> None:
    root = _package(tmp_path / "src", "engine", "version.py", '__version__ = "2.0"\n')
    pack = write_pack(manifest='package = "engine"\nversions = ">=1,<2"\n')
    with pytest.raises(PackError, match=r"describes engine >=1,<2, this is 2\.0; widen"):
        choose_packs(root, (), given=(str(pack),))


def test_of_several_given_packs_the_one_for_the_version_applies(
    tmp_path: Path, write_pack: WritePack
) -> None:
    root = _package(tmp_path / "src", "engine", "version.py", '__version__ = "2.0"\n')
    write_pack(manifest='package = "engine"\nversions = "<2"\n', name="packs/old")
    write_pack(manifest='package = "engine"\nversions = ">=2"\n', name="packs/new")
    (chosen,) = choose_packs(root, (), given=(str(tmp_path / "packs"),))
    assert chosen.label.endswith("packs/new")


def test_a_range_needs_a_version(tmp_path: Path, write_pack: WritePack) -> None:
    root = _package(tmp_path / "src", "engine")
    pack = write_pack(manifest='package = "engine"\nversions = ">=1"\n')
    with pytest.raises(PackError, match="no version of engine was found"):
        choose_packs(root, (), given=(str(pack),))


def test_a_given_pack_for_another_package_is_refused(tmp_path: Path, write_pack: WritePack) -> None:
    root = _package(tmp_path / "src", "other")
    with pytest.raises(PackError, match="no target holds the package engine"):
        choose_packs(root, (), given=(str(write_pack()),))


def test_a_path_without_a_pack_exits_two(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nx = torch.zeros(1)\n")
    result = CliRunner().invoke(lint, [str(tmp_path), "--pack", str(tmp_path), "--no-cache"])
    assert result.exit_code == 2
    assert "a pack is a folder with a pack.toml" in result.stderr


def test_shipped_packs_are_read_by_version_and_can_be_left_out(tmp_path: Path) -> None:
    root = _package(tmp_path, "sglang", "version.py", '__version__ = "0.5.11"\n')
    chosen = {one.label for one in choose_packs(root, ())}
    assert "packs/sglang/roles" in chosen
    assert "packs/sglang/two_inputs" not in chosen
    assert choose_packs(root, (), shipped=False) == ()


def test_a_given_pack_stands_in_for_the_shipped_ones(tmp_path: Path, write_pack: WritePack) -> None:
    root = _package(tmp_path / "src", "sglang", "version.py", '__version__ = "0.5.11"\n')
    pack = write_pack(manifest='package = "sglang"\n')
    assert [one.label for one in choose_packs(root, (), given=(str(pack),))] == [pack.as_posix()]


def test_every_shipped_pack_is_whole() -> None:
    packages = {one.name for one in SHIPPED.iterdir() if one.is_dir()}
    assert packages == {"sglang", "vllm", "vllm_ascend", "transformers"}
    for package in packages:
        assert shipped_packs(package)
        for pack in shipped_packs(package):
            assert pack.package == package
            assert pack.promises
            assert pack.versions.text, f"{pack.label} says no versions"


def test_a_changed_pack_is_not_answered_from_the_cache(
    tmp_path: Path, write_pack: WritePack
) -> None:
    root = _package(tmp_path / "src", "engine")
    (root / "engine" / "worker.py").write_text(
        "import torch\n\nclass Worker:\n    def __init__(self, draft_config):\n"
        "        self.hidden_states = torch.zeros((4, draft_config.hidden_size))\n"
    )
    line = 'class Worker:\n    hidden_states: Float[Tensor, "tokens {}_hidden"]\n'
    pack = write_pack(line.format("draft"))
    arguments = [str(root), "--pack", str(pack), "--output-format", "concise"]
    assert CliRunner().invoke(lint, arguments).exit_code == 0
    (pack / "engine" / "worker.pyi").write_text(line.format("target"))
    result = CliRunner().invoke(lint, arguments)
    assert result.exit_code == 1
    assert "SHP201" in result.stdout


def test_the_summary_counts_contracts(tmp_path: Path, write_pack: WritePack) -> None:
    root = _package(tmp_path / "src", "engine")
    (root / "engine" / "worker.py").write_text("class Worker:\n    config = None\n")
    owners = 'package = "engine"\n[owners]\n"engine.worker:Worker.config" = "draft"\n'
    report = run((str(root),), pack_paths=(str(write_pack(manifest=owners)),))
    assert report.summary()["contracts"] == 1
    assert report.findings == ()
