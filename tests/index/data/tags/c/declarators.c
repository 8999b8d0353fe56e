/* A table of
 * handlers. */
static struct handler table[2][3], *first, **second;
int (*compare)(const void *, const void *);
typedef int array_t[4];
typedef struct node { struct node *next; } node;
typedef enum { ONE = 1, TWO } number;
union value { int i; float f; unsigned flag : 1; };
extern int elsewhere;
extern int here = 1;
char *strdup(const char *s) { return 0; }
unsigned long long **deep(void) { return 0; }
static inline void __attribute__((unused)) marked(void) {}
// Old style.
int old(a, b) int a; char *b; { return a; }
#if X
#define LIMIT 1
#else
#define LIMIT 2
#endif
enum { ANONYMOUS };
