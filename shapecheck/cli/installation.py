"""Whether another distribution, `shapecheck` on the index, has written over this one's package."""

from __future__ import annotations

_FOREIGN = "shapecheck"
_REMEDY = (
    "pip uninstall shapecheck && pip install --force-reinstall --no-deps torch-shapecheck "
    "(in a checkout: `-e .` for the last word)"
)


def foreign_distribution() -> str:
    """The message when the other project owns our import package too, else an empty string."""
    # Late: half of what a bare `import shapecheck` costs would be this module's machinery.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        foreign = distribution(_FOREIGN)
    except PackageNotFoundError:
        return ""
    owns = any(
        path.parts and path.parts[0] in ("shapecheck", "shapecheck.py")
        for path in foreign.files or ()
    )
    if not owns:
        return ""
    return (
        f"shapecheck: the distribution {_FOREIGN} {foreign.version} is installed and owns the same "
        f"import package as torch-shapecheck, so files of both are mixed; run: {_REMEDY}"
    )
