"""The program ``umix``, also as ``python -m umix``: the command line."""

import sys


def main() -> int:
    """Run the command line and return its exit code; Ctrl-C is one line from the first import on."""
    try:
        from umix.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("umix: interrupted.\n")
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
