"""`python -m engine`."""

import sys

from shapecheck.errors import ShapecheckError

try:
    # Contracts read SHAPECHECK when the modules that hold them are imported.
    from engine.cli import main
except ShapecheckError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(2)
except ModuleNotFoundError as error:
    print(
        f"error: the engine needs {error.name}; pip install 'torch-shapecheck[engine]'",
        file=sys.stderr,
    )
    sys.exit(2)

main()
