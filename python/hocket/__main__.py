"""``python -m hocket`` is the command ``hocket``."""

from hocket.cli import main

if __name__ == "__main__":
    main()
