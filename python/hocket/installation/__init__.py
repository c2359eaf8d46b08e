"""What is installed here: the package, what it may use besides, and what each of these is for."""

from hocket.installation.parts import Installation, Part, examine

__all__ = ["Installation", "Part", "examine"]
