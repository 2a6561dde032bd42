"""Numbers in sentences."""


def counted(number: int, thing: str) -> str:
    """The number with the noun ``thing`` in the singular or plural.

    >>> counted(1, "run"), counted(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
