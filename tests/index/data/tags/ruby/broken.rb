module M
  class Sound
    def ok(a)
      a.call(
    end
    def also; 1; end
  end
def last
