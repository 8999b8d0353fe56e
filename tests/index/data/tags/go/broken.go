package b

import "fmt"

func Sound(a int) error { return fmt.Errorf("x") }

func Broken( {
}

type T struct { A int
	B

func (t T) Last() {}
