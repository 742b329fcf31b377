"""The compiled half of FlowOS."""



def instruction_sets() -> list[str]:
    """The vector instruction sets that CPU and system allow, narrow first."""

def compiler() -> str:
    """The compiler that built this module, with its version."""
