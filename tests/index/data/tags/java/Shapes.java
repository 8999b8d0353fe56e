package p.q;
import java.util.List;
import static java.util.Map.*;
import java.io.*;
/** Doc of A.
 * more */
@Anno(x = 1)
public class A<T> extends B<T> implements C, D {
    private static final int N = 3, M = 4;
    static { foo(); }
    public A(int x) { this.x = x; super.y(); }
    @Override
    public <U> U m(List<U> a, int... r) throws E { int local = 1; new Runnable() { public void run() {} }; x.y().z; return (U) null; }
    interface I { int K = 1; void q(); default void d() {} }
    enum Color { RED { void f() {} }, GREEN(1); int g; }
    @interface An { int value() default 1; }
}
record R(int a, String b) { R { } static int s; }
