"""Which packs describe the code under a root: by package and version, or as the user says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from shapecheck.static.packs.model import MANIFEST, Pack, PackError, plain_name
from shapecheck.static.release import parse_release

SHIPPED = Path(__file__).parents[2] / "packs"
_VERSION = re.compile(
    r"^__version__\s*(?::[^=\n]*)?=\s*(?:version\s*=\s*)?['\"]([^'\"]+)['\"]", re.M
)
_VERSION_FILES = ("_version.py", "version.py", "__init__.py")
_HEAD_BYTES = 64 * 1024


def choose_packs(
    root: Path, targets: Iterable[str], *, given: tuple[str, ...] = (), shipped: bool = True
) -> tuple[Pack, ...]:
    """The packs that apply below `root`; PackError when a given one applies to nothing there.

    A given pack stands in for the shipped ones of its package. Without a version, or outside its
    range, a pack does not apply.
    """
    chosen: list[Pack] = []
    taken: set[str] = set()
    for path in given:
        packs = list(_packs_at(path))
        fitting = [pack for pack in packs if _applies(pack, root, targets)]
        if not fitting:
            raise PackError(_misfit(path, packs, root, targets))
        chosen += fitting
        taken |= {pack.package for pack in packs}
    if shipped:
        for folder in sorted(SHIPPED.iterdir()):
            if folder.name not in taken and (root / folder.name).is_dir():
                chosen += [
                    one for one in shipped_packs(folder.name) if _applies(one, root, targets)
                ]
    return tuple(chosen)


@cache
def shipped_packs(package: str) -> tuple[Pack, ...]:
    """The packs for a package that come with the tool."""
    return tuple(
        _load(file.parent, f"packs/{file.parent.relative_to(SHIPPED).as_posix()}")
        for file in sorted((SHIPPED / package).glob(f"*/{MANIFEST}"))
    )


def _load(folder: Path, label: str) -> Pack:
    # Late: pydantic reads the manifest, and most runs meet no package that has a pack.
    from shapecheck.static.packs.load import load_pack

    return load_pack(folder, label)


def _packs_at(path: str) -> Iterator[Pack]:
    folder = Path(path)
    if (folder / MANIFEST).is_file():
        yield _load(folder, folder.as_posix())
        return
    files = sorted(folder.glob(f"*/{MANIFEST}")) if folder.is_dir() else []
    if not files:
        raise PackError(f"{path}: no pack there; a pack is a folder with a {MANIFEST}")
    for file in files:
        yield _load(file.parent, file.parent.as_posix())


def _applies(pack: Pack, root: Path, targets: Iterable[str]) -> bool:
    if not (root / pack.package).is_dir():
        return False
    if not pack.versions.text:
        return True
    version = find_version(root, pack.package, pack.distributions, targets)
    return version is not None and pack.versions.holds(version)


def find_version(
    root: Path, package: str, names: frozenset[str], targets: Iterable[str]
) -> str | None:
    """The version of a package below `root`: of the release, its dist-info, or its own text."""
    for target in targets:
        if target.startswith("pypi:"):
            release = parse_release(target)
            if release.folder_name == root.name and plain_name(release.name) in names:
                return release.version
    for folder in sorted(root.glob("*.dist-info")):
        name, _, version = folder.name.removesuffix(".dist-info").partition("-")
        if plain_name(name) in names:
            return version
    for file in _VERSION_FILES:
        found = _VERSION.search(_head(root / package / file))
        if found is not None:
            return found[1]
    return None


def _head(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return stream.read(_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _misfit(path: str, packs: list[Pack], root: Path, targets: Iterable[str]) -> str:
    pack = packs[0]
    if not any((root / one.package).is_dir() for one in packs):
        return f"{path}: no target holds the package {pack.package}; give a target that does"
    version = find_version(root, pack.package, pack.distributions, targets)
    if version is None:
        return (
            f"{path}: it describes {pack.package} {pack.versions.text}, and no version of "
            f"{pack.package} was found below {root}; remove `versions`, or lint a release"
        )
    ranges = " or ".join(one.versions.text for one in packs)
    return f"{path}: it describes {pack.package} {ranges}, this is {version}; widen `versions`"
