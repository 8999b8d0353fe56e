import a.b
class Sound(val x: Int) {
    fun ok(): Int = x
    fun broken( {
    }
}
fun last() {}
