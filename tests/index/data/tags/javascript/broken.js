import x from './x';
class A {
  m() { return x( }
  n() { return 2; }
}
function sound(a) { return a; }
const f = (b => {
function late() {}
