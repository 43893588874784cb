package eventpattern

import "strconv"

// A Builder makes an Event from values that are at hand, without a JSON text in
// between. Used again it needs no memory of its own. It belongs to one goroutine.
//
//	detail := b.Root().Object("detail")
//	detail.String("cluster", "prod")
//	detail.Object("labels").String("app", "web")
//	e := b.Event()
type Builder struct {
	event  Event
	wanted pathSet // paths to keep, nil for all of them
	arrays int32   // so far
}

// NewBuilder returns a Builder of events for any pattern.
func NewBuilder() *Builder { return &Builder{} }

// NewBuilder returns a Builder that keeps of an event what the set looks at: its
// events are for this set alone.
func (s *Set) NewBuilder() *Builder { return &Builder{wanted: s.paths} }

// Root begins a new event, over the one before, and returns its object.
func (b *Builder) Root() Object {
	b.event.reset()
	b.arrays = 0
	return Object{b, place{step: none, element: none}}
}

// Event is what was built since Root was called last. It stays valid until Root
// is called again.
func (b *Builder) Event() *Event {
	b.event.buildIndex()
	return &b.event
}

// Object is an object of an event that is being built. As in a text, a key that
// is given twice has both values. Strings are taken to be valid UTF-8.
type Object struct {
	b  *Builder
	at place
}

// Wants reports whether the value of a key may be looked at: one that costs
// something to make can be left out where it isn't.
func (o Object) Wants(key string) bool { return o.b.wanted.has(o.at.hash.key(key).sum()) }

// String adds a string.
func (o Object) String(key, value string) { o.add(key, kindString, value, number{}) }

// Bool adds true or false.
func (o Object) Bool(key string, value bool) {
	if value {
		o.add(key, kindTrue, "true", number{})
	} else {
		o.add(key, kindFalse, "false", number{})
	}
}

// Int adds a number.
func (o Object) Int(key string, value int64) {
	if !o.Wants(key) {
		return
	}
	text := strconv.FormatInt(value, 10)
	o.add(key, kindNumber, text, parseNumber(text))
}

// Strings adds an array of strings.
func (o Object) Strings(key string, values []string) {
	if len(values) == 0 || !o.Wants(key) {
		return
	}
	in := o.Object(key).at
	for _, v := range values {
		o.b.event.addField(field{text: v, kind: kindString}, in)
	}
}

// Object adds an object. One that stays empty is as good as absent.
func (o Object) Object(key string) Object {
	return Object{o.b, o.b.event.newStep(key, o.at)}
}

// Array adds an array of objects.
func (o Object) Array(key string) Array {
	a := Array{b: o.b, at: o.b.event.newStep(key, o.at), number: o.b.arrays}
	o.b.arrays++
	return a
}

func (o Object) add(key string, k kind, text string, n number) {
	if !o.Wants(key) {
		return
	}
	o.b.event.addField(field{text: text, num: n, kind: k}, o.b.event.newStep(key, o.at))
}

// Array is an array of objects in an event that is being built.
type Array struct {
	b      *Builder
	at     place
	number int32 // of the array in the event
}

// Object adds the element of an index, which counts from 0 and up.
func (a Array) Object(index int) Object {
	at := a.at
	at.element = a.b.event.newElement(a.number, int32(index), a.at)
	return Object{a.b, at}
}
