"""The program behind ./dev. It is in this folder so that Python finds the package pliantdev."""

import sys

from pliantdev.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
