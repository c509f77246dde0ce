"""`python -m pliant`: checks what works on this machine."""

import sys

from .doctor import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
