"""The parts of `operations.image`: where images come from, how they are made, where they are kept."""
