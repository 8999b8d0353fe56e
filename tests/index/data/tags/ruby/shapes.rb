require 'json'
require_relative "x/y"
# A module.
module M
  VERSION = "1"
  class C < D
    include Enumerable
    attr_accessor :a, :b
    attr_reader :r
    LIM, MAX = 1, 2
    @@cv = 1
    def m(a, b = 1, *c, k:, &blk)
      @x = a.foo(b); local = 1; Foo::Bar.new(1)
      bar
    end
    def self.s; end
    class << self
      def t; end
    end
    def empty? = true
    def ==(o) true end
    def x=(v); end
    alias n m
    alias_method :o, :m
    define_method(:dm) { |x| x }
    private def pr; end
    Struct.new(:a) do
      def in_struct; end
    end
  end
  module_function
end
class A::B < C::D; end
def top
  [1].each { |v| puts v }
end
Point = Struct.new(:x, :y)
describe "x" do
  it "works" do
  end
end
