"""Runs the command line: python -m fallow, and the command `fallow`."""

import sys


def main() -> int:
    """As cli.main; an interrupt while that is still being loaded ends it as quietly as one later does."""
    try:
        from fallow import cli  # noqa: PLC0415 - that takes a while

        return cli.main()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
