import a.b
class Sound { def ok = 1; def broken( = 2 }
object Last { val x = 1 }
