package pruner

// span is a half-open range of the table.
type span[T any] struct {
	from, to T
}

// spans are the ranges that a run has yet to visit, the present one first, and those
// that it passed because other sessions held locks there.
type spans[T any] struct {
	open   []span[T]
	passed []span[T]
}

func (s *spans[T]) finished() bool { return len(s.open) == 0 }

// advance moves the start of the present range, which ends when last is true.
func (s *spans[T]) advance(to T, last bool) {
	if last {
		s.open = s.open[1:]
		return
	}
	s.open[0].from = to
}

// pass moves on like advance and keeps what lies between for reopen.
func (s *spans[T]) pass(to T, last bool) {
	s.passed = append(s.passed, span[T]{from: s.open[0].from, to: to})
	s.advance(to, last)
}

// reopen makes the passed ranges the ones to visit.
func (s *spans[T]) reopen() bool {
	s.open, s.passed = s.passed, nil
	return len(s.open) > 0
}

// left returns what was not visited.
func (s *spans[T]) left() []span[T] {
	return append(append([]span[T]{}, s.open...), s.passed...)
}
