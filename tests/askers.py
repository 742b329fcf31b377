"""What asks a ledger for cores in a test."""


class NoAsker:
    """It is given them at once or not at all."""

    def wake(self) -> None:
        """It is not asleep."""
