#include <stdio.h>
#include "x/y.h"
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define N 3
struct point { int x, *y; int (*cb)(int); struct { int in; } u; };
typedef struct { int b; } box_t, *box_p;
typedef int (*fn_t)(int);
typedef unsigned long ulong_t;
enum color { RED, GREEN = 2 };
int prototype(int a);
extern int ext;
static const char *names[3] = {0}, *p;
struct point pt = { .x = 1 };
static const char *name(struct point *p)
{
    int local = f(p->x); enum color c = (enum color) RED; label: goto label;
    return MAX(0, sizeof(box_t));
}
int (*handler(int sig))(int) { return 0; }
#ifdef X
int cond(void) { return 1; }
#endif
