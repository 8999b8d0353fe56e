import Foundation
import struct A.B
/// Doc.
@objc public class C<T>: Base, Proto where T: X {
    let a: Int = 1, b = 2
    var g: Int { return 1 }
    static let s = 1
    init(x: Int) { self.a = x }
    deinit {}
    func m(_ a: Int, with b: String) -> Int { let local = 1; func inner() {}; return a.b.c(1) }
    static func st() {}
    subscript(i: Int) -> Int { return i }
    enum E: Int { case a, b = 2; case c(Int); func z() {} }
    struct S { var x: Int }
    typealias TA = Int
}
protocol Proto: Q { func q() -> Int; var p: Int { get }; associatedtype A }
extension C: P2 { func ext() {} }
extension Foo.Bar { }
actor Act { }
func top<U>(u: U) -> U { return u }
let t = 1
var (d1, d2) = (1, 2)
func == (l: C, r: C) -> Bool { true }
O.of(); let x = Foo<Int>(1)
