"""The program behind ./dev: here, so that Python finds pliantdev beside it."""

import sys

from pliantdev.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
