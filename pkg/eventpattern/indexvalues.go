package eventpattern

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// numbers finds numbers by range, and those that are no exact doubles by their
// spelling.
type numbers struct {
	ranges    []numberRange // by low: a balanced tree, the middle of a part is its root
	spellings map[string][]int32
	lows      []float64 // sorted
	highs     []float64 // sorted
}

type numberRange struct {
	low, high float64
	highest   float64 // high of the part of the tree below
	branch    int32
}

func (n *numbers) add(k key, branch int32) {
	if k.class == bySpelling {
		if n.spellings == nil {
			n.spellings = map[string][]int32{}
		}
		n.spellings[k.text] = append(n.spellings[k.text], branch)
		return
	}
	n.ranges = append(n.ranges, numberRange{low: k.low, high: k.high, branch: branch})
}

func (n *numbers) close() {
	for _, r := range n.ranges {
		n.lows, n.highs = append(n.lows, r.low), append(n.highs, r.high)
	}
	slices.Sort(n.lows)
	slices.Sort(n.highs)
	slices.SortStableFunc(n.ranges, func(a, b numberRange) int { return cmp.Compare(a.low, b.low) })
	raise(n.ranges)
}

// raise sets highest in a part of the tree.
func raise(part []numberRange) float64 {
	if len(part) == 0 {
		return math.Inf(-1)
	}
	m := len(part) / 2
	part[m].highest = max(part[m].high, raise(part[:m]), raise(part[m+1:]))
	return part[m].highest
}

// crowd is how many ranges hold an end of the key's.
func (n *numbers) crowd(k key) int {
	if k.class == bySpelling {
		return len(n.spellings[k.text])
	}
	at := func(v float64) int { // begun up to v, less ended before v
		begun := sort.Search(len(n.lows), func(i int) bool { return n.lows[i] > v })
		return begun - sort.SearchFloat64s(n.highs, v)
	}
	return max(at(k.low), at(k.high))
}

func (n *numbers) find(f *field, r *run) {
	if n.spellings != nil {
		r.tryAll(n.spellings[f.text])
	}
	if f.num.exact {
		findRanges(n.ranges, f.num.value, r)
	}
}

func findRanges(part []numberRange, v float64, r *run) {
	for len(part) > 0 {
		m := len(part) / 2
		if part[m].highest < v {
			return
		}
		findRanges(part[:m], v, r)
		if part[m].low > v {
			return
		}
		if part[m].high >= v {
			r.try(part[m].branch)
		}
		part = part[m+1:]
	}
}

// bounds of a range, both included where only one of them is.
func (t numeric) bounds() (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	if t.hasLow {
		low = t.low
	}
	if t.hasHigh {
		high = t.high
	}
	return low, high
}

// block is an address block: the address without its host bits.
type block struct {
	address address
	bits    int
}

func newBlock(a address, bits int) block {
	m := prefixMask(bits, false)
	return block{address{hi: a.hi & m.hi, lo: a.lo & m.lo, v4: a.v4}, bits}
}

// bits is the length of the block's prefix; that of an IPv4 block counts from
// the beginning of the 128 bits that an address is kept in.
func (t cidr) bits() int {
	n := 0
	for _, half := range []uint64{t.mask.hi, t.mask.lo} {
		for ; half&(1<<63) != 0; half <<= 1 {
			n++
		}
	}
	return n
}

// blocks finds addresses, looked up once for each prefix length.
type blocks struct {
	lengths []int // sorted
	by      map[block][]int32
}

func (x *blocks) add(b block, branch int32) {
	if x.by == nil {
		x.by = map[block][]int32{}
	}
	x.by[b] = append(x.by[b], branch)
	if i, found := slices.BinarySearch(x.lengths, b.bits); !found {
		x.lengths = slices.Insert(x.lengths, i, b.bits)
	}
}

func (x *blocks) crowd(b block) int {
	n := 0
	for _, l := range x.lengths {
		if l <= b.bits {
			n += len(x.by[newBlock(b.address, l)])
		}
	}
	return n
}

func (x *blocks) find(a address, r *run) {
	for _, l := range x.lengths {
		r.tryAll(x.by[newBlock(a, l)])
	}
}

// except finds what lists of strings, or of numbers, do not exclude.
type except struct {
	strings exclusions[string]
	numbers exclusions[float64]
}

// exclusions are branches that want any value but some. Where more than half of
// them exclude a value, those that do not are listed for it; else all are tried,
// so that in both cases few are tried in vain.
type exclusions[V comparable] struct {
	all   []int32
	by    map[V][]int32 // branches that exclude a value
	leave map[V][]int32 // those that do not
}

func (x *except) add(k key, branch int32) {
	if k.class == byNumberExclusion {
		values := make([]float64, len(k.numbers))
		for i, n := range k.numbers {
			values[i] = n.value
		}
		x.numbers.add(values, branch)
		return
	}
	x.strings.add(k.excluded, branch)
}

func (x *except) close() {
	x.strings.close()
	x.numbers.close()
}

func (x *except) crowd(k key) int {
	if k.class == byNumberExclusion {
		n := len(x.numbers.all)
		for _, v := range k.numbers {
			n = min(n, x.numbers.left(v.value))
		}
		return n
	}
	n := len(x.strings.all)
	for _, v := range k.excluded {
		n = min(n, x.strings.left(v))
	}
	return n
}

func (x *exclusions[V]) add(values []V, branch int32) {
	x.all = append(x.all, branch)
	if x.by == nil {
		x.by = map[V][]int32{}
	}
	for _, v := range values {
		if list := x.by[v]; len(list) == 0 || list[len(list)-1] != branch {
			x.by[v] = append(list, branch)
		}
	}
}

func (x *exclusions[V]) close() {
	slices.Sort(x.all)
	x.all = slices.Compact(x.all)
	x.leave = map[V][]int32{}
	for v, excluding := range x.by {
		if 2*len(excluding) <= len(x.all) {
			continue
		}
		x.leave[v] = slices.DeleteFunc(slices.Clone(x.all), func(b int32) bool {
			_, found := slices.BinarySearch(excluding, b)
			return found
		})
	}
}

// left is how many branches do not exclude a value.
func (x *exclusions[V]) left(v V) int { return len(x.all) - len(x.by[v]) }

// without returns the branches to try for a value, which is of a kind that may
// be excluded or is not.
func (x *exclusions[V]) without(excludable bool, v V) []int32 {
	if excludable {
		if left, ok := x.leave[v]; ok {
			return left
		}
	}
	return x.all
}
