"""Runs the command line: python -m fallow."""

import sys

from fallow.cli import main

if __name__ == "__main__":
    sys.exit(main())
