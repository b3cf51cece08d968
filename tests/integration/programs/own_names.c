// A library with functions whose names are the C library's, and that are something else: no one may call them for those.
#include <stdlib.h>

int log1p(int n);
int log2(int n);
int sqrt(int n);

int log1p(int n) { abort(); return n; }
int log2(int n) { abort(); return n; }
int sqrt(int n) { abort(); return n; }
