package workload

import "math/rand/v2"

// Population is who likes what: users and items are numbers from 1.
type Population struct{ Users, Items int64 }

// picker draws items and users of one connection.
type picker struct {
	r     *rand.Rand
	mix   Mix
	of    Population
	hot   int64 // items 1 to hot are the popular ones
	every int64 // of the others every how many-th is ever liked
}

func newPicker(mix Mix, of Population, r *rand.Rand) picker {
	return picker{
		r: r, mix: mix, of: of,
		hot:   max(1, int64(float64(of.Items)*mix.HotItems)),
		every: max(1, int64(1/mix.Liked)),
	}
}

func (p *picker) user() int64 { return 1 + p.r.Int64N(p.of.Users) }

// item draws an item to be read.
func (p *picker) item() int64 {
	if p.mix.Hot > 0 && (p.hot >= p.of.Items || p.r.Float64() < p.mix.Hot) {
		return 1 + p.r.Int64N(p.hot)
	}
	if p.mix.Hot == 0 {
		return 1 + p.r.Int64N(p.of.Items)
	}
	return p.hot + 1 + p.r.Int64N(p.of.Items-p.hot)
}

// liked draws an item to be liked: a popular one, or one of those that are ever
// liked.
func (p *picker) liked() int64 {
	item := p.item()
	if p.mix.Hot > 0 && item <= p.hot {
		return item
	}
	return max(1, item-item%p.every)
}

// edge is one user liking one item.
type edge struct{ user, item int64 }

// memory is how many of its own likes a connection remembers to take back or to
// repeat.
const memory = 4096

// recent are the last likes of a connection.
type recent struct {
	edges []edge
	next  int
}

func (m *recent) add(e edge) {
	if len(m.edges) < memory {
		m.edges = append(m.edges, e)
		return
	}
	m.edges[m.next] = e
	m.next = (m.next + 1) % memory
}

// take removes a random like.
func (m *recent) take(r *rand.Rand) (edge, bool) {
	if len(m.edges) == 0 {
		return edge{}, false
	}
	i := r.IntN(len(m.edges))
	e, last := m.edges[i], len(m.edges)-1
	m.edges[i] = m.edges[last]
	m.edges = m.edges[:last]
	m.next = 0
	return e, true
}

// any returns a random like and keeps it.
func (m *recent) any(r *rand.Rand) (edge, bool) {
	if len(m.edges) == 0 {
		return edge{}, false
	}
	return m.edges[r.IntN(len(m.edges))], true
}
