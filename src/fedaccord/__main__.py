"""The command fedaccord, and python -m fedaccord."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is still loaded ends it without a traceback."""
    try:
        from fedaccord.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("fedaccord: interrupted.\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
