#include <string>
namespace n {
class Sound { public: int get() const { return x_; } private: int x_; };
int broken( { return 1; }
template <typename T> T ok(T a) { return a; }
}
void n::Sound::out() { call(
