package a.b
import x.y.Z
import x.{A, B => C, _}
import q.*
/** Doc. */
@anno
case class P[T](x: Int, private val y: T)(implicit z: Int) extends Base[T](z) with I {
  val f: Int = 1
  var g = 2
  lazy val h = 3
  def this(a: Int) = this(a, a)
  def m(a: Int): Int = { val local = 1; def inner() = 1; a.b.c(1) }
  type TA = Int
  val (q1, q2) = (1, 2)
}
trait I { def q(): Int; val p: Int; type A }
object O extends I { def of() = 1; object In }
package object po { val k = 1 }
abstract class AC
enum E { case A, B; case C(x: Int) }
given ord: Ordering[Int] = ???
extension (s: String) def ext(x: Int): Int = x
def top[U](u: U) = u
val t = 1
object Main { new Foo[Int](1); O.of(); listOf(1).map(_.y); x match { case P(a, b) => a } }
