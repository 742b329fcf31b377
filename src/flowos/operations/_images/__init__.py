"""The parts of `operations.image`: sources, builds and the library of images."""
