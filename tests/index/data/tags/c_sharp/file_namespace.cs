namespace File.Scoped;
class X { void M() {} }
