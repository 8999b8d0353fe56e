use a::b;
fn sound() -> i32 { 1 }
struct S { x: i32,
impl S { fn m(&self) { b(; } fn n(&self) {} }
fn last() {}
