package policy

import (
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// memory is what one evaluation remembers of the rules it has evaluated (a
// topdown.VirtualCache). Our rules are few, so a short list looked through from
// its start costs a fifth of a tree of maps; and it is used again.
type memory struct {
	frames []int // where each frame begins in known
	known  []remembered
	terms  []*ast.Term // the refs of known, one after the other
}

type remembered struct {
	from, to int // its ref, in terms
	value    *ast.Term
}

var memories = sync.Pool{New: func() any { return new(memory) }}

func newMemory() *memory {
	m := memories.Get().(*memory)
	m.Push()
	return m
}

// release forgets everything and makes m available again.
func (m *memory) release() {
	clear(m.known)
	clear(m.terms)
	m.frames, m.known, m.terms = m.frames[:0], m.known[:0], m.terms[:0]
	memories.Put(m)
}

func (m *memory) Push() { m.frames = append(m.frames, len(m.known)) }

func (m *memory) Pop() {
	last := len(m.frames) - 1
	m.known = m.known[:m.frames[last]]
	m.frames = m.frames[:last]
}

func (m *memory) find(ref ast.Ref) int {
	for i := m.frames[len(m.frames)-1]; i < len(m.known); i++ {
		if same(m.terms[m.known[i].from:m.known[i].to], ref) {
			return i
		}
	}
	return -1
}

func same(a, b ast.Ref) bool {
	if len(a) != len(b) {
		return false
	}
	for i := len(a) - 1; i >= 0; i-- { // refs differ at their ends
		if a[i] != b[i] && !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}

func (m *memory) Get(ref ast.Ref) (*ast.Term, bool) {
	i := m.find(ref)
	if i < 0 {
		return nil, false
	}
	return m.known[i].value, m.known[i].value == nil
}

func (m *memory) Put(ref ast.Ref, value *ast.Term) {
	if i := m.find(ref); i >= 0 {
		m.known[i].value = value
		return
	}
	from := len(m.terms)
	m.terms = append(m.terms, ref...)
	m.known = append(m.known, remembered{from, len(m.terms), value})
}

func (m *memory) Keys() []ast.Ref {
	var keys []ast.Ref
	for _, k := range m.known[m.frames[len(m.frames)-1]:] {
		if k.value != nil {
			keys = append(keys, append(ast.Ref(nil), m.terms[k.from:k.to]...))
		}
	}
	return keys
}
