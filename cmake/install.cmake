# Where things go: the preload library and the runtimes beside each other, so that one finds the other.
