package eventpattern

import (
	"fmt"
	"unicode/utf8"
)

// Limits of an event. All are above what the service delivers, which is 1 MB at
// most.
const (
	MaxEventBytes = 16 << 20
	MaxEventDepth = 1001    // the detail may have 1000 levels
	MaxEventItems = 1 << 21 // keys, scalars and elements of arrays, each that is kept
)

// Event is an event, flattened once: its scalars, each with its path and the
// array elements it lies in.
type Event struct {
	fields   []field
	steps    []step
	elements []element
	// heads and field.next index the fields by the hash of their path. Within a
	// bucket they stand in the order of the event.
	heads []int32
}

// none ends chains of steps, elements and fields.
const none int32 = -1

// A field is a scalar of the event.
type field struct {
	text    string // of a string without quotes and escapes, of others as spelled
	num     number // of a number
	path    uint64 // hash of the joined path
	step    int32  // the last key of its path
	element int32  // the innermost array element it lies in, or none
	next    int32  // in the same bucket, or none
	kind    kind
}

// A step is a key on the way to a field. Paths are chains of steps and never
// joined: an event of long keys would make them longer than itself.
type step struct {
	key    string
	parent int32
}

// An element is an object or array within an array. Scalars in an array stand
// for the field that holds the array, whatever their place.
type element struct {
	array  int32 // number of the array in the event
	parent int32 // the element that the array lies in, or none
	depth  int32 // how many elements it lies in
	index  int32 // its place in the array
	step   int32 // the key that the outermost of directly nested arrays stands under
}

// ParseEvent reads an event once, for any number of patterns. A key that occurs
// twice in an object has both values.
func ParseEvent(event []byte) (*Event, error) {
	var f flattener
	f.event.fields = make([]field, 0, 40) // what a pod event has
	f.event.steps = make([]step, 0, 48)
	if err := f.flatten(event); err != nil {
		return nil, err
	}
	return &f.event, nil
}

// flattener turns an event's text into fields.
type flattener struct {
	scanner
	event  Event
	wanted pathSet // paths to keep, nil for all of them
	arrays int32   // so far
	depth  int
}

// place is where in the event the flattener is.
type place struct {
	step    int32
	element int32
	hash    pathHash
}

// flatten reads an event, over what was read before.
func (f *flattener) flatten(event []byte) error {
	if len(event) > MaxEventBytes {
		return fmt.Errorf("event: %d bytes, %d is the most", len(event), MaxEventBytes)
	}
	f.scanner = scanner{s: string(event)}
	f.arrays, f.depth = 0, 0
	f.event.reset()
	if err := f.document(); err != nil {
		return fmt.Errorf("event: %w", err)
	}
	f.event.buildIndex()
	return nil
}

func (f *flattener) document() error {
	if !utf8.ValidString(f.s) {
		return f.fail("the text is not valid UTF-8")
	}
	k, err := f.peek()
	if err != nil {
		return err
	}
	if k != kindObject {
		return f.fail("%s where the event's object belongs", k)
	}
	if err := f.object(place{step: none, element: none}); err != nil {
		return err
	}
	f.space()
	if f.i < len(f.s) {
		return f.fail("%s after the event's object", f.found())
	}
	return nil
}

// value reads the value of a key of the object at a place.
func (f *flattener) value(key string, at place) error {
	k, err := f.peek()
	if err != nil {
		return err
	}
	if k != kindObject && k != kindArray && !f.wanted.has(at.hash.key(key).sum()) {
		_, err = f.scalar(k)
		return err
	}
	steps, fields := len(f.event.steps), len(f.event.fields)
	err = f.item(k, f.event.newStep(key, at))
	if len(f.event.fields) == fields {
		f.event.steps = f.event.steps[:steps] // it leads to nothing
	}
	return err
}

// item reads a value of a kind that peek returned, at the place where it counts.
func (f *flattener) item(k kind, at place) error {
	switch k {
	case kindObject:
		return f.object(at)
	case kindArray:
		return f.array(at)
	}
	text, err := f.scalar(k)
	if err != nil || !f.wanted.has(at.hash.sum()) {
		return err
	}
	if f.event.items() >= MaxEventItems {
		return f.fail("more than %d keys and values", MaxEventItems)
	}
	v := field{text: text, kind: k}
	if k == kindNumber {
		v.num = parseNumber(text)
	}
	f.event.addField(v, at)
	return nil
}

func (f *flattener) enter() error {
	if f.depth++; f.depth > MaxEventDepth {
		return f.fail("more than %d levels", MaxEventDepth)
	}
	if f.event.items() >= MaxEventItems {
		return f.fail("more than %d keys and values", MaxEventItems)
	}
	f.i++ // the bracket
	return nil
}

func (f *flattener) object(at place) error {
	if err := f.enter(); err != nil {
		return err
	}
	for first := true; ; first = false {
		key, more, err := f.member(first)
		if err != nil {
			return err
		}
		if !more {
			f.depth--
			return nil
		}
		if err := f.value(key, at); err != nil {
			return err
		}
	}
}

func (f *flattener) array(at place) error {
	if err := f.enter(); err != nil {
		return err
	}
	array := f.arrays
	f.arrays++
	for i := int32(0); ; i++ {
		more, err := f.element(i == 0)
		if err != nil {
			return err
		}
		if !more {
			f.depth--
			return nil
		}
		inner := at
		k, err := f.peek()
		if err != nil {
			return err
		}
		elements, fields := len(f.event.elements), len(f.event.fields)
		if k == kindObject || k == kindArray {
			inner.element = f.event.newElement(array, i, at)
		}
		if err := f.item(k, inner); err != nil {
			return err
		}
		if len(f.event.fields) == fields {
			f.event.elements = f.event.elements[:elements] // there is nothing in it
		}
	}
}

// reset empties the event and keeps its memory.
func (e *Event) reset() {
	e.fields, e.steps, e.elements = e.fields[:0], e.steps[:0], e.elements[:0]
}

// items is what an event takes of MaxEventItems.
func (e *Event) items() int { return len(e.fields) + len(e.steps) + len(e.elements) }

// addField adds a scalar at a place.
func (e *Event) addField(f field, at place) {
	f.path, f.step, f.element = at.hash.sum(), at.step, at.element
	e.fields = append(e.fields, f)
}

// newStep goes from a place one key further.
func (e *Event) newStep(key string, at place) place {
	e.steps = append(e.steps, step{key: key, parent: at.step})
	return place{step: int32(len(e.steps) - 1), element: at.element, hash: at.hash.key(key)}
}

// newElement adds the element of an index in an array that stands at a place.
func (e *Event) newElement(array, index int32, at place) int32 {
	x := element{array: array, parent: at.element, index: index, step: at.step}
	if at.element != none {
		x.depth = e.elements[at.element].depth + 1
	}
	e.elements = append(e.elements, x)
	return int32(len(e.elements) - 1)
}
