"""A pack from its folder: the manifest and every stub, checked word by word before any use."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from shapecheck.diagnostics.model import Span
from shapecheck.static.contracts.promise import Promise
from shapecheck.static.contracts.reading import AnnotationError, Place, read_promise
from shapecheck.static.index import ClassFacts, FunctionFacts, ModuleFacts, index_module
from shapecheck.static.loader import UnreadableFileError, parse_source, read_source
from shapecheck.static.packs.manifest import read_manifest
from shapecheck.static.packs.model import MANIFEST, Name, Pack, PackError
from shapecheck.static.packs.versions import VersionRange

_MAX_FILES = 1000


def load_pack(folder: Path, label: str) -> Pack:
    """The pack in a folder; PackError says which file, line and word is at fault."""
    manifest, text = read_manifest(folder / MANIFEST)
    pack = Pack(
        label=label,
        package=manifest.package,
        distributions=manifest.names,
        versions=VersionRange.parse(manifest.versions),
        texts=[text],
    )
    for key, owner in manifest.owners.items():
        _add_owner(pack, key, owner, text)
    for number, file in enumerate(_stubs(folder)):
        if number >= _MAX_FILES:
            raise PackError(f"{folder}: more than {_MAX_FILES} stubs; name the pack's own folder")
        _add_stub(pack, folder, file, manifest.phases)
    return pack


def _stubs(folder: Path) -> Iterator[Path]:
    for path, folders, files in os.walk(folder, followlinks=False):
        folders.sort()
        yield from (Path(path, name) for name in sorted(files) if name.endswith(".pyi"))


def _add_owner(pack: Pack, key: str, owner: str, text: str) -> None:
    module, _, inner = key.partition(":")
    holder, _, member = inner.partition(".")
    line = next((at for at, one in enumerate(text.splitlines(), 1) if key in one), 1)
    span = Span(path=f"{pack.label}/{MANIFEST}", line=line)
    source = f"the pack {pack.label}"
    name = Name(module, holder, member)
    pack.promises[name] = Promise(span, source, f"{key} = {owner}", owner)
    pack.spans[name] = span


def _add_stub(pack: Pack, folder: Path, file: Path, phases: tuple[str, ...]) -> None:
    inside = file.relative_to(folder)
    shown = f"{pack.label}/{inside.as_posix()}"
    try:
        source = read_source(file, shown)
        pack.texts.append(source.text)
        tree = parse_source(source)
    except UnreadableFileError as error:
        place = error.diagnostic.primary
        line = f":{place.line}" if place else ""
        raise PackError(f"{file}{line}: {error.diagnostic.message}; repair the stub") from None
    parts = inside.with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    module = index_module(tree, name=name, path=shown, is_package=False, lines=source.lines)
    place = Place(shown, f"the pack {pack.label}", strict=True, phases=phases)
    try:
        pack.spans[Name(name)] = Span(path=shown, line=1)
        for cls in module.classes:
            _add_class(pack, cls, place)
        for function in module.functions:
            _add_function(pack, function, place)
        _refuse_globals(module)
    except AnnotationError as error:
        raise PackError(f"{file}:{error.node.lineno}: {error.message}") from None


def _add_class(pack: Pack, cls: ClassFacts, place: Place) -> None:
    name = Name(cls.module.name, cls.name)
    pack.spans[name] = place.span(cls.node)
    _add_decorators(pack, name, cls.node.decorator_list, place)
    for field_name, annotation in cls.annotations.items():
        _add(pack, Name(cls.module.name, cls.name, field_name), annotation, place)


def _add_function(pack: Pack, function: FunctionFacts, place: Place) -> None:
    holder = function.cls.name if function.cls else function.name
    name = Name(function.module.name, holder, function.name if function.cls else "")
    pack.spans[name] = place.span(function.node)
    _add_decorators(pack, name, function.node.decorator_list, place)
    spec = function.node.args
    for argument in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]:
        if argument.annotation is not None:
            parameter = Name(name.module, name.holder, name.member, argument.arg)
            _add(pack, parameter, argument.annotation, place)
    if function.node.returns is not None:
        _add(
            pack,
            Name(name.module, name.holder, name.member, "return"),
            function.node.returns,
            place,
        )


def _add(pack: Pack, name: Name, annotation: ast.expr, place: Place) -> None:
    pack.spans[name] = place.span(annotation)
    promise = read_promise(annotation, place)
    if promise is not None:
        pack.promises[name] = promise


def _add_decorators(pack: Pack, name: Name, decorators: list[ast.expr], place: Place) -> None:
    for node in decorators:
        if isinstance(node, ast.Name):
            continue  # dataclass, classmethod and the like say nothing about sizes
        marked = ast.copy_location(
            ast.Subscript(
                ast.Name("Annotated", ast.Load()),
                ast.Tuple([ast.Name("object", ast.Load()), node], ast.Load()),
                ast.Load(),
            ),
            node,
        )
        promise = read_promise(ast.fix_missing_locations(marked), place)
        if promise is not None:
            pack.promises[name] = promise
        elif isinstance(node, ast.Call) and isinstance(node.args[0], ast.Constant):
            pack.phases[name] = str(node.args[0].value)


def _refuse_globals(module: ModuleFacts) -> None:
    for name, bound in module.bindings.items():
        if isinstance(bound, ast.expr):
            raise AnnotationError(bound, f"{name}: a stub holds classes and functions; remove it")
