"""What ./dev is made of. Standard library only: it must run on a fresh Debian machine."""
