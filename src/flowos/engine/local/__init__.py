"""This machine: as a node, as a pool, and as what stands in for the nodes of a fake one."""
