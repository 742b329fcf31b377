"""Text as Markdown that shows it as it is."""


def escaped(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "\\`*_<>[]{}$#|" else sign for sign in text)


def escaped_but_code(text: str) -> str:
    """Code in backticks stays code."""
    parts = text.split("`")
    parts[::2] = map(escaped, parts[::2])
    return "`".join(parts) if len(parts) % 2 else escaped(text)
