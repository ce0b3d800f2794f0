package hot

import "likectl/pkg/store"

// packed is a store.Key without gaps, which a map hashes in half the time.
type packed struct{ item, kind uint64 }

func pack(k store.Key) packed {
	return packed{uint64(k.Item.ID), uint64(k.Counter)<<32 | uint64(uint16(k.Item.Type))}
}

// slot is a counter of a sketch. It has counted at most over writes of other keys.
type slot struct {
	key         store.Key
	count, over int64
	at          int // where its node is in the heap
}

// node is a counter in the heap, with its count beside it to compare.
type node struct {
	count int64
	slot  int
}

// sketch is Space-Saving over weighted keys.
type sketch struct {
	slots []slot // up to its capacity
	index map[packed]int
	heap  []node // the least count first
}

func newSketch(capacity int) sketch {
	return sketch{
		slots: make([]slot, 0, capacity), heap: make([]node, 0, capacity),
		index: make(map[packed]int, capacity),
	}
}

func (s *sketch) reset() {
	s.slots, s.heap = s.slots[:0], s.heap[:0]
	clear(s.index)
}

// least is how many writes a key without a counter has at most.
func (s *sketch) least() int64 {
	if len(s.slots) < cap(s.slots) {
		return 0
	}
	return s.heap[0].count
}

// add counts n writes of a key. One without a counter takes over the least
// counter, with its count.
func (s *sketch) add(key store.Key, n int64) {
	p := pack(key)
	i, ok := s.index[p]
	switch {
	case ok:
		s.slots[i].count += n
	case len(s.slots) < cap(s.slots):
		i = len(s.slots)
		s.slots = append(s.slots, slot{key: key, count: n, at: i})
		s.heap = append(s.heap, node{slot: i}) // its place is found from below, then from above
		s.index[p] = i
		s.up(i)
	default:
		i = s.heap[0].slot
		least := s.slots[i].count
		delete(s.index, pack(s.slots[i].key))
		s.index[p] = i
		s.slots[i] = slot{key: key, count: least + n, over: least}
	}
	at := s.slots[i].at
	s.heap[at].count = s.slots[i].count
	s.down(at)
}

func (s *sketch) up(at int) {
	for at > 0 {
		parent := (at - 1) / 2
		if s.heap[parent].count <= s.heap[at].count {
			return
		}
		s.swap(at, parent)
		at = parent
	}
}

func (s *sketch) down(at int) {
	for {
		child := 2*at + 1
		if child >= len(s.heap) {
			return
		}
		if right := child + 1; right < len(s.heap) && s.heap[right].count < s.heap[child].count {
			child = right
		}
		if s.heap[at].count <= s.heap[child].count {
			return
		}
		s.swap(at, child)
		at = child
	}
}

func (s *sketch) swap(a, b int) {
	s.heap[a], s.heap[b] = s.heap[b], s.heap[a]
	s.slots[s.heap[a].slot].at, s.slots[s.heap[b].slot].at = a, b
}
