package a.b
import x.y.Z
import x.w.*
import q.R as S
/** Doc. */
@Anno
data class P<T>(val x: Int, private var y: T, z: Int) : Base<T>(z), I {
    val f: Int = 1
    var g: String
        get() = "a"
        set(v) {}
    init { foo() }
    constructor(a: Int) : this(a, a) {}
    companion object { const val K = 1; fun make(): P = P(1) }
    companion object Named {}
    override fun m(a: Int): Int { val local = 1; fun inner() {} ; return a.b.c(1) }
    fun <U> gen(u: U) = u
    inner class In
    enum class E { A, B(1) { fun q() {} }; fun z() {} }
}
interface I {
 fun q()
 val p: Int
}
sealed interface SI
object O : I {
 fun of() {}
}
fun String.ext(x: Int): Int = x
val String.len: Int get() = 1
typealias TA = Map<String, P<Int>>
val top = 1
val (d1, d2) = pair
annotation class Anno
fun interface FI {
 fun call()
}
fun main() { val l = { x: Int -> x }; O.of(); P<Int>(1); listOf(1).map { it.y }; if (a is P) {} }
