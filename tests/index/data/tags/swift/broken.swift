import A
class Sound { func ok() -> Int { return 1 } }
func broken( { }
struct Last { var x: Int }
