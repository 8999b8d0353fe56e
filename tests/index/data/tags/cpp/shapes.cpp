#include <vector>
using namespace std;
using foo::bar;
namespace n { namespace { int anon; } }
namespace a::b { class Fwd; }
inline namespace v1 {}
template <typename T, int N = 1>
class C final : public D<T>, private n::E {
 public:
  C() : x_(1) {}
  explicit C(int a);
  virtual ~C() {}
  int get() const { return x_; }
  virtual void pure() = 0;
  static int count(int a = 1);
  bool operator==(const C &o) const { return true; }
  operator bool() const;
  friend class Fr;
  using Id = int;
  typedef int Old;
  enum class K : int { A, B = 2 };
  template <class U> U tm(U u) { return u; }
  int x_, *y_{nullptr};
  std::vector<int> v;
  struct In { int z; };
  C(const C&) = delete;
  C& operator=(C&&) = default;
  void operator()(int) {}
};
void n::C::run(int a) { std::sort(a->b.c(), x.y); auto l = [&](int q) { return q; }; new Foo<int>(1); foo<int>(2); }
template <typename T>
T biggest(T a, T b) { return a; }
using Id2 = int;
template <> struct Spec<int> { int s; };
template <typename T> int C<T>::m() { return 1; }
C::C() {}
C::~C() {}
bool C::operator<(int) { return 1; }
int* ptr() { return 0; }
int& ref() { static int x; return x; }
extern "C" { int cfun(int); }
constexpr int kMax = 3;
auto tr(int a) -> int { return a; }
union Un { int a; };
concept Q = true;
#define M(x) x
ARROW_EXPORT int exported(int);
class ARROW_EXPORT Exp : public B { void f(); };
