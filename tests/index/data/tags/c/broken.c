#include "x.h"
static int sound(int a) { return a; }
int broken(int a { return 1; }
struct s { int x; int
};
MACRO_WITHOUT_SEMICOLON(x)
int last(void) { return sound(1); }
