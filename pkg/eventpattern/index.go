package eventpattern

// An index finds, for a value at one path, the branches that may want it. It
// leaves out none whose condition passes the value; that the others are few is
// what it is for, as every branch it names is tried in full.
type index struct {
	path    string
	hash    uint64
	plain   *texts // of strings as they are
	folded  *texts // of strings without regard to case
	numbers *numbers
	blocks  *blocks
	words   map[kind][]int32 // null, true, false
	except  *except
	strings []int32 // any string may pass
	any     []int32 // any value may pass
}

// A key is what a value must be like to pass a test.
type key struct {
	class     class
	text      string
	low, high float64
	block     block
	word      kind
	excluded  []string
	numbers   []number
}

type class uint8

const (
	byText class = iota // equal
	byPrefix
	bySuffix
	byFoldedText
	byFoldedPrefix
	byFoldedSuffix
	byNumber   // within low and high, both included
	bySpelling // a number that is spelled so
	byBlock    // an address in it
	byWord
	byExclusion       // no string of a list
	byNumberExclusion // no number of a list
	byString          // any string
	byValue           // any value
)

// isWide reports whether keys of a class say little about a value.
func (c class) isWide() bool { return c >= byExclusion }

// keys returns keys any of which finds the test, and each of which would do.
// A test that is not known here is found by any value.
func keys(t test) []key {
	switch t := t.(type) {
	case exactNumber:
		if t.num.exact {
			return []key{{class: byNumber, low: t.num.value, high: t.num.value}}
		}
		return []key{{class: bySpelling, text: t.text}}
	case exactLiteral:
		return []key{{class: byWord, word: t.kind}}
	case exactAddress:
		return []key{{class: byBlock, block: newBlock(t.address, 128)}}
	case cidr:
		return []key{{class: byBlock, block: newBlock(t.base, t.bits())}}
	case prefix:
		return []key{{class: byPrefix, text: t.text}}
	case suffix:
		return []key{{class: bySuffix, text: t.text}}
	case ignoreCase:
		return []key{{class: byFoldedText, text: t.text.key()}}
	case prefixIgnoreCase:
		return []key{{class: byFoldedPrefix, text: t.text.key()}}
	case suffixIgnoreCase:
		return []key{{class: byFoldedSuffix, text: t.text.key()}}
	case wildcard:
		return t.keys()
	case numeric:
		low, high := t.bounds()
		return []key{{class: byNumber, low: low, high: high}}
	case notStrings:
		return []key{{class: byExclusion, excluded: t.values.values}}
	case notNumbers:
		return []key{{class: byNumberExclusion, numbers: t.values}}
	}
	return []key{{class: byValue}}
}

// keys of a wildcard are what stands before its first star, and behind its last.
func (t wildcard) keys() []key {
	first, last := t.parts[0], t.parts[len(t.parts)-1]
	switch {
	case len(t.parts) == 1:
		return []key{{class: byText, text: first}}
	case first == "" && last == "":
		return []key{{class: byString}}
	case first == "":
		return []key{{class: bySuffix, text: last}}
	case last == "":
		return []key{{class: byPrefix, text: first}}
	}
	return []key{{class: byPrefix, text: first}, {class: bySuffix, text: last}}
}

// add puts a branch under a key.
func (x *index) add(k key, branch int32) {
	switch k.class {
	case byText, byPrefix, bySuffix:
		if x.plain == nil {
			x.plain = &texts{}
		}
		x.plain.add(k.class, k.text, branch)
	case byFoldedText, byFoldedPrefix, byFoldedSuffix:
		if x.folded == nil {
			x.folded = &texts{}
		}
		x.folded.add(k.class-byFoldedText, k.text, branch)
	case byNumber, bySpelling:
		if x.numbers == nil {
			x.numbers = &numbers{}
		}
		x.numbers.add(k, branch)
	case byBlock:
		if x.blocks == nil {
			x.blocks = &blocks{}
		}
		x.blocks.add(k.block, branch)
	case byWord:
		if x.words == nil {
			x.words = map[kind][]int32{}
		}
		x.words[k.word] = append(x.words[k.word], branch)
	case byExclusion, byNumberExclusion:
		if x.except == nil {
			x.except = &except{}
		}
		x.except.add(k, branch)
	case byString:
		x.strings = append(x.strings, branch)
	default:
		x.any = append(x.any, branch)
	}
}

// close makes the index ready to be asked.
func (x *index) close() {
	if x.numbers != nil {
		x.numbers.close()
	}
	if x.except != nil {
		x.except.close()
	}
}

// crowd estimates how many branches are tried where a branch under the key is.
func (x *index) crowd(k key) int {
	switch k.class {
	case byText, byPrefix, bySuffix:
		return x.plain.crowd(k.class, k.text)
	case byFoldedText, byFoldedPrefix, byFoldedSuffix:
		return x.folded.crowd(k.class-byFoldedText, k.text)
	case byNumber, bySpelling:
		return x.numbers.crowd(k)
	case byBlock:
		return x.blocks.crowd(k.block)
	case byWord:
		return len(x.words[k.word])
	case byExclusion, byNumberExclusion:
		return x.except.crowd(k)
	case byString:
		return len(x.strings)
	}
	return len(x.any)
}

// find tries the branches that may want a field.
func (x *index) find(f *field, r *run) {
	r.tryAll(x.any)
	switch f.kind {
	case kindString:
		r.tryAll(x.strings)
		if x.plain != nil {
			x.plain.find(f.text, r)
		}
		if x.folded != nil {
			x.folded.findFolded(f.text, r)
		}
		if x.blocks != nil {
			if a, ok := parseAddress(f.text); ok {
				x.blocks.find(a, r)
			}
		}
	case kindNumber:
		if x.numbers != nil {
			x.numbers.find(f, r)
		}
	default:
		r.tryAll(x.words[f.kind])
	}
	if x.except != nil {
		r.tryAll(x.except.strings.without(f.kind == kindString, f.text))
		r.tryAll(x.except.numbers.without(f.kind == kindNumber && f.num.exact, f.num.value))
	}
}
