"""`python -m pliant`: what works here, and what does not."""

import sys

from .doctor import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
