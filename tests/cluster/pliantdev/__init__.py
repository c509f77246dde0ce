"""The parts of ./dev. Standard library only: it must run on a fresh Debian machine."""
