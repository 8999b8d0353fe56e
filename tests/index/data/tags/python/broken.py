from a import b
import (

class Sound:
    """Still here."""

    def first(self):
        return b.call(

    def second(self, x: int) -> str:
        return x

def after(:
    pass

def last(): return 1
x = 
