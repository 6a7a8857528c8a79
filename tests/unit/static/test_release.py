"""Fetching a release: what is asked of pip, what is unpacked, what is said when it fails."""

from __future__ import annotations

import stat
import subprocess
import zipfile
from pathlib import Path

import pytest

from shapecheck.static.release import (
    Release,
    ReleaseError,
    cache_folder,
    fetch,
    parse_release,
    unpack,
)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHAPECHECK_CACHE_DIR", str(tmp_path / "cache"))


def _wheel(path: Path, files: dict[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def _pip(monkeypatch: pytest.MonkeyPatch, *, files: dict[str, str] | None, stderr: str = ""):
    commands: list[list[str]] = []

    def answer(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        if files is not None:
            folder = Path(command[command.index("--dest") + 1])
            _wheel(folder / "thing-1.0-py3-none-any.whl", files)
        return subprocess.CompletedProcess(command, 0 if files is not None else 1, "", stderr)

    monkeypatch.setattr(subprocess, "run", answer)
    return commands


def test_target_is_parsed() -> None:
    release = parse_release("pypi:Some_Thing==1.0.post1:some/thing/")
    assert (release.name, release.version, release.subpath) == (
        "Some_Thing",
        "1.0.post1",
        "some/thing",
    )
    assert release.folder_name == "some-thing-1.0.post1"


@pytest.mark.parametrize(
    "target", ["pypi:", "pypi:x", "pypi:x==", "pypi:-x==1", "pypi:x==1:../up", "pypi:x==1 --pre"]
)
def test_bad_targets_are_refused(target: str) -> None:
    with pytest.raises(ReleaseError):
        parse_release(target)


def test_fetch_asks_for_wheels_only_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = _pip(monkeypatch, files={"thing/a.py": "x = 1\n", "thing/data.bin": "no"})
    root = fetch(Release(name="thing", version="1.0"))
    assert (root / "thing" / "a.py").read_text() == "x = 1\n"
    assert not (root / "thing" / "data.bin").exists()
    assert "--only-binary=:all:" in commands[0]
    assert "--no-deps" in commands[0]
    assert fetch(Release(name="thing", version="1.0")) == root
    assert len(commands) == 1


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("ERROR: No matching distribution found (from versions: none)", "no wheel of it"),
        ("ERROR: No matching distribution found (from versions: 1, 2)", "no wheel of this version"),
        ("WARNING: Retrying ... Temporary failure in name resolution", "cannot be reached"),
        ("/bin/python: No module named pip", "ensurepip"),
        ("boom", "boom"),
    ],
)
def test_failure_is_explained_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, stderr: str, said: str
) -> None:
    _pip(monkeypatch, files=None, stderr=stderr)
    with pytest.raises(ReleaseError, match=said):
        fetch(Release(name="thing", version="1.0"))
    assert not [file for file in cache_folder().rglob("*") if file.is_file()]


@pytest.mark.parametrize("name", ["../out.py", "/abs.py", "a/../../out.py", "c:/x.py"])
def test_entries_that_leave_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    wheel = _wheel(tmp_path / "evil.whl", {name: "x"})
    with pytest.raises(ReleaseError, match="leaves its folder"):
        unpack(wheel, tmp_path / "into", suffixes=(".py",))
    assert not (tmp_path / "out.py").exists()


def test_links_are_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "link.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        entry = zipfile.ZipInfo("link.py")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(ReleaseError, match="leaves its folder"):
        unpack(wheel, tmp_path / "into", suffixes=(".py",))


def test_a_broken_wheel_is_named(tmp_path: Path) -> None:
    wheel = tmp_path / "broken.whl"
    wheel.write_bytes(b"PK not a zip")
    with pytest.raises(ReleaseError, match="not a readable wheel"):
        unpack(wheel, tmp_path / "into", suffixes=(".py",))


def test_half_unpacked_release_is_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    release = Release(name="thing", version="1.0")
    _pip(monkeypatch, files={"thing/a.py": "x = 1\n", "../up.py": "bad"})
    with pytest.raises(ReleaseError):
        fetch(release)
    _pip(monkeypatch, files={"thing/a.py": "x = 2\n"})
    assert (fetch(release) / "thing" / "a.py").read_text() == "x = 2\n"


@pytest.mark.network
def test_the_public_bug_is_found_in_the_real_release() -> None:
    from shapecheck.static.report import run

    report = run(("pypi:sglang==0.5.11:sglang/srt/speculative",), packs=False)
    leading = [
        (one.code, Path(one.primary.path).name, one.primary.line)
        for one in report.findings
        if one.primary
    ][:3]
    assert leading == [
        ("SHP301", "eagle_draft_extend_cuda_graph_runner.py", 158),
        # One argument: its arm of 3*draft_hidden, and the call.
        ("SHP201", "eagle_worker.py", 1117),
        ("SHP302", "eagle_worker.py", 1120),
    ]
    fixed = run(("pypi:sglang==0.5.12:sglang/srt/speculative",), packs=False)
    assert not [one for one in fixed.findings if one.code == "SHP302"]


@pytest.mark.network
def test_with_its_pack_both_arms_and_both_sites_of_the_public_bug_are_found() -> None:
    from shapecheck.static.report import run

    report = run(("pypi:sglang==0.5.11:sglang/srt/speculative",))
    leading = [
        (one.code, Path(one.primary.path).name, one.primary.line)
        for one in report.findings
        if one.primary
    ][:3]
    assert leading == [
        ("SHP201", "eagle_draft_extend_cuda_graph_runner.py", 158),
        ("SHP201", "eagle_worker.py", 1117),
        ("SHP202", "eagle_worker.py", 1120),
    ]
