package b;
import java.util.List;
class Broken {
    int sound(List<String> a) { return a.size( ; }
    void other() { }
    int field = ;
    static class Inner { void m() {} }
