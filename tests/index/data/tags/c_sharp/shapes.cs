using System;
using static System.Math;
using F = System.IO.File;
namespace N.M {
    [Attr]
    public class C<T> : B, I where T : class {
        const int K = 1; private readonly int _f, _g = 2;
        public event EventHandler Ev;
        public event EventHandler Ev2 { add {} remove {} }
        public int P { get; set; }
        public int this[int i] => i;
        public C(int a) : base(a) { }
        ~C() {}
        public static C operator +(C a, C b) => a;
        public async Task<int> M<T>(T a, ref int b) where T : class { int L() { return 1; } var v = new Foo<int>(); a.B.C(1); return L(); }
        delegate void D(int a);
        int I.Expl() => 1;
    }
    interface I { void Q(); int P2 { get; } }
    struct S { public int x; }
    enum E { A, B = 2 }
    record R(int A);
    record struct RS(int B);
}
