/// \brief A buffer.
class MY_EXPORT Buffer : public Base {
 public:
  MY_DEFAULT_MOVE(Buffer);
  MY_DEPRECATED("old") Status Close();
  static Result<int> Make(int a);
};
MY_EXPORT Status Open(const std::string& path) { return Status::OK(); }
struct alignas(8) MY_ALIGNED Packed { int a; };
enum class MY_EXPORT Mode : char { READ, WRITE };
TEST(Suite, Name) { ASSERT_OK(Open("x")); }
