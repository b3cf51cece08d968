// A library that does nothing, for a user who preloads something already.
void nothing_to_see(void) {}
