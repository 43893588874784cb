package eventpattern

// pathHash is the hash of a path that is still being walked: it depends on the
// joined path only, not on where the dots come from.
type pathHash struct {
	state uint64
	begun bool
}

const (
	hashBasis = 14695981039346656037
	hashPrime = 1099511628211
)

// key returns the hash of the path one key further.
func (h pathHash) key(key string) pathHash {
	s := h.state
	if h.begun {
		s = (s ^ '.') * hashPrime
	} else {
		s = hashBasis
	}
	for i := 0; i < len(key); i++ {
		s = (s ^ uint64(key[i])) * hashPrime
	}
	return pathHash{s, true}
}

func (h pathHash) sum() uint64 { return h.state }

func hashPath(path string) uint64 { return pathHash{}.key(path).sum() }

// pathSet is a set of path hashes, open addressing. The nil set has every path.
type pathSet []uint64

func newPathSet(hashes []uint64) pathSet {
	size := 8
	for size < 4*len(hashes) {
		size *= 2
	}
	s := make(pathSet, size)
	for _, h := range hashes {
		i := bucket(h, size)
		for s[i] != 0 && s[i] != h {
			i = (i + 1) & (size - 1)
		}
		s[i] = h
	}
	return s
}

// has may report true for a path that is not in the set, never the other way round.
func (s pathSet) has(hash uint64) bool {
	if s == nil || hash == 0 { // 0 marks a free slot
		return true
	}
	for i := bucket(hash, len(s)); s[i] != 0; i = (i + 1) & (len(s) - 1) {
		if s[i] == hash {
			return true
		}
	}
	return false
}

// buildIndex fills heads and the fields' next.
func (e *Event) buildIndex() {
	size := 1
	for size < 2*len(e.fields) {
		size *= 2
	}
	if cap(e.heads) < size {
		e.heads = make([]int32, size)
	}
	e.heads = e.heads[:size]
	for i := range e.heads {
		e.heads[i] = none
	}
	for i := len(e.fields) - 1; i >= 0; i-- { // backwards, so that chains are in order
		head := &e.heads[bucket(e.fields[i].path, size)]
		e.fields[i].next = *head
		*head = int32(i)
	}
}

func bucket(hash uint64, size int) int { return int((hash ^ hash>>32) & uint64(size-1)) }

// first returns the first field at a path, or none.
func (e *Event) first(path string, hash uint64) int32 {
	return e.atOrAfter(e.heads[bucket(hash, len(e.heads))], path, hash)
}

// after returns the next field at the same path, or none.
func (e *Event) after(i int32, path string, hash uint64) int32 {
	return e.atOrAfter(e.fields[i].next, path, hash)
}

func (e *Event) atOrAfter(i int32, path string, hash uint64) int32 {
	for i != none {
		f := &e.fields[i]
		if f.path == hash && e.isPath(f.step, path) {
			return i
		}
		i = f.next
	}
	return none
}

// isPath reports whether the keys up to a step, joined with dots, are the path.
// It compares from the end and takes no longer than the path is long.
func (e *Event) isPath(s int32, path string) bool {
	for {
		st := &e.steps[s]
		rest := len(path) - len(st.key)
		if rest < 0 || path[rest:] != st.key {
			return false
		}
		if st.parent == none {
			return rest == 0
		}
		if rest == 0 || path[rest-1] != '.' {
			return false
		}
		path, s = path[:rest-1], st.parent
	}
}
