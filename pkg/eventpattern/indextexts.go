package eventpattern

import "slices"

// texts finds strings by the whole, the beginning or the end.
type texts struct {
	whole    map[string][]int32
	prefixes affixes
	suffixes affixes
}

// maxAffix is how much of a beginning or an end is looked up, in bytes: enough to
// tell rules apart, and few lookups whatever the rules are.
const maxAffix = 64

// maxFolded bounds the texts that are folded as a whole, in bytes. It is more than
// any pattern's text has.
const maxFolded = 64 << 10

func head(text string) string { return text[:min(len(text), maxAffix)] }

func tail(text string) string { return text[max(0, len(text)-maxAffix):] }

func (t *texts) add(c class, text string, branch int32) {
	switch c {
	case byPrefix:
		t.prefixes.add(head(text), branch)
	case bySuffix:
		t.suffixes.add(tail(text), branch)
	default:
		if t.whole == nil {
			t.whole = map[string][]int32{}
		}
		t.whole[text] = append(t.whole[text], branch)
	}
}

func (t *texts) crowd(c class, text string) int {
	n := 0
	count := func(branches []int32) { n += len(branches) }
	switch c {
	case byPrefix:
		t.prefixes.begin(head(text), count)
	case bySuffix:
		t.suffixes.end(tail(text), count)
	default:
		count(t.whole[text])
	}
	return n
}

func (t *texts) find(text string, r *run) {
	r.tryAll(t.whole[text])
	t.prefixes.begin(text, r.tryAll)
	t.suffixes.end(text, r.tryAll)
}

// findFolded is find without regard to case.
func (t *texts) findFolded(text string, r *run) {
	if len(text) > maxFolded { // no whole; a character takes at most four bytes, folded at least one
		t.prefixes.begin(string(appendFolded(nil, text[:8*maxAffix])), r.tryAll)
		t.suffixes.end(string(appendFolded(nil, text[len(text)-8*maxAffix:])), r.tryAll)
		return
	}
	m := r.memo
	m.folded = appendFolded(m.folded[:0], text)
	r.tryAll(t.whole[string(m.folded)])
	if t.prefixes.by != nil {
		t.prefixes.begin(string(m.folded[:min(len(m.folded), maxAffix)]), r.tryAll)
	}
	if t.suffixes.by != nil {
		t.suffixes.end(string(m.folded[max(0, len(m.folded)-maxAffix):]), r.tryAll)
	}
}

// affixes are beginnings or ends, looked up once for each of their lengths.
type affixes struct {
	lengths []int // sorted
	by      map[string][]int32
}

func (a *affixes) add(text string, branch int32) {
	if a.by == nil {
		a.by = map[string][]int32{}
	}
	a.by[text] = append(a.by[text], branch)
	if i, found := slices.BinarySearch(a.lengths, len(text)); !found {
		a.lengths = slices.Insert(a.lengths, i, len(text))
	}
}

// begin calls what is under the beginnings of a text.
func (a *affixes) begin(text string, call func([]int32)) {
	for _, l := range a.lengths {
		if l > len(text) {
			return
		}
		call(a.by[text[:l]])
	}
}

// end calls what is under the ends of a text.
func (a *affixes) end(text string, call func([]int32)) {
	for _, l := range a.lengths {
		if l > len(text) {
			return
		}
		call(a.by[text[len(text)-l:]])
	}
}
