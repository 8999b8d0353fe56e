package a

import "fmt"
import (
	m "math/rand"
	. "net/http"
)

// Max is it.
const Max = 3
const (
	A, B = iota, 2
)
var x, y int
var (
	z = func() {}
)

type S[T any] struct{ a, c T; Emb; *pkg.Emb2 }
type (
	N int
	R interface {
		Read(p []byte) (int, error)
		io.Closer
	}
)
type Al = S[int]
type F func(a int)

func (s *S[T]) Get(i int) T {
	local := 1
	type inner struct { q int }
	s.a.foo(fmt.Println(i), pkg.Type{A: 1})
	for k, v := range m { _ = v }
	var other = 2
	return s.a
}
func (S) Val() {}
func main() { go func() {}() }
func G[T any](x T, y ...int) (r map[string]S[int], err error) { return }
