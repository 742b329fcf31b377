"""The parts of `operations.image`: where images come from, how they are made and kept."""
