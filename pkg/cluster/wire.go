package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxMessage is the largest message that is kept at once: what client-go's
// decoder of streams reads at most. An object in etcd has 1.5 MiB.
const maxMessage = 16 << 20

// errGroup: proto2's groups are in none of Kubernetes' messages.
var errGroup = errors.New("a group: want a field that Kubernetes' messages have")

// message reads the fields of a protobuf message in memory, one after the other:
//
//	for m.next() {
//		switch m.number { … }
//	}
//	return m.err
type message struct {
	rest   []byte
	number protowire.Number
	kind   protowire.Type
	bytes  []byte // the value, where kind is BytesType; part of the message
	varint uint64 // the value, where kind is VarintType
	err    error  // of the bytes, or of what was made of them; it ends the reading
}

func read(b []byte) message { return message{rest: b} }

// next goes to the next field, if there is one and no error.
func (m *message) next() bool {
	if m.err != nil || len(m.rest) == 0 {
		return false
	}
	var n int
	if m.number, m.kind, n = protowire.ConsumeTag(m.rest); n < 0 {
		m.err = protowire.ParseError(n)
		return false
	}
	m.rest = m.rest[n:]
	switch m.kind {
	case protowire.BytesType:
		m.bytes, n = protowire.ConsumeBytes(m.rest)
	case protowire.VarintType:
		m.varint, n = protowire.ConsumeVarint(m.rest)
	case protowire.StartGroupType, protowire.EndGroupType:
		m.check(errGroup)
		return false
	default:
		n = protowire.ConsumeFieldValue(m.number, m.kind, m.rest)
	}
	if n < 0 {
		m.check(protowire.ParseError(n))
		return false
	}
	m.rest = m.rest[n:]
	return true
}

// check ends the reading if what was made of the field is an error.
func (m *message) check(err error) {
	if err != nil && m.err == nil {
		m.err = fmt.Errorf("field %d: %w", m.number, err)
	}
}

// is reports whether the field has the type that it should have; if not, the
// message isn't what it was taken for.
func (m *message) is(want protowire.Type) bool {
	if m.kind != want {
		m.check(fmt.Errorf("wire type %d: want %d", m.kind, want))
	}
	return m.kind == want
}

func (m *message) inner() message {
	if !m.is(protowire.BytesType) {
		return message{}
	}
	return read(m.bytes)
}

func (m *message) text() string {
	if !m.is(protowire.BytesType) {
		return ""
	}
	return string(m.bytes)
}

func (m *message) integer() int64 {
	if !m.is(protowire.VarintType) {
		return 0
	}
	return int64(m.varint)
}

// source is what a message is read from as it comes.
type source interface {
	io.Reader
	io.ByteReader
}

// section is a message that is read as it comes, so that no more of it is kept
// than one field.
type section struct {
	from  source
	left  uint64
	whole bool // all there is: it ends with its source
}

// field is the head of a field in a section: a length-delimited one's value is
// yet to be read, by take, skip or within; others' were passed over.
type field struct {
	number protowire.Number
	size   uint64
	inside bool // has a value to read
}

// mistyped is the error of a field that should have a length and has none.
func (f field) mistyped() error {
	return fmt.Errorf("field %d: a number: want wire type %d", f.number, protowire.BytesType)
}

func everything(from source) *section { return &section{from: from, left: math.MaxUint64, whole: true} }

// next returns the next field's head, io.EOF after the last one.
func (s *section) next() (field, error) {
	tag, err := binary.ReadUvarint(s)
	if err != nil {
		return field{}, err
	}
	number, kind := protowire.DecodeTag(tag)
	f := field{number: number}
	if number < protowire.MinValidNumber {
		return f, fmt.Errorf("field number %d", number)
	}
	switch kind {
	case protowire.BytesType:
		f.inside = true
		f.size, err = binary.ReadUvarint(s)
	case protowire.VarintType:
		_, err = binary.ReadUvarint(s)
	case protowire.Fixed32Type:
		err = s.skip(4)
	case protowire.Fixed64Type:
		err = s.skip(8)
	default:
		err = errGroup
	}
	if err != nil {
		return f, fmt.Errorf("field %d: %w", number, cut(err))
	}
	return f, nil
}

// ReadByte is for varints: io.EOF is the section's end.
func (s *section) ReadByte() (byte, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	b, err := s.from.ReadByte()
	if err != nil && !s.whole {
		err = cut(err)
	}
	s.left--
	return b, err
}

// claim takes size bytes off what is left, for who reads them.
func (s *section) claim(size uint64) error {
	if size > s.left {
		return io.ErrUnexpectedEOF
	}
	s.left -= size
	return nil
}

// within returns the section of a field's value. It has to be read to its end.
func (s *section) within(size uint64) (*section, error) {
	return &section{from: s.from, left: size}, s.claim(size)
}

// take reads a field's value into the buffer, which is good until the next take.
func (s *section) take(size uint64, into *buffer) ([]byte, error) {
	if size > maxMessage {
		return nil, tooLarge(size)
	}
	if err := s.claim(size); err != nil {
		return nil, err
	}
	b := into.of(int(size))
	_, err := io.ReadFull(s.from, b)
	return b, cut(err)
}

func (s *section) skip(size uint64) error {
	if size > maxMessage {
		return tooLarge(size)
	}
	if err := s.claim(size); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, s.from, int64(size))
	return cut(err)
}

func tooLarge(size uint64) error {
	return fmt.Errorf("a message of %d bytes: want at most %d", size, maxMessage)
}

// cut is err where an end is no end but a message that was cut short.
func cut(err error) error {
	if err == io.EOF { //nolint:errorlint // a reader's own, never wrapped
		return io.ErrUnexpectedEOF
	}
	return err
}

// keptBuffer is the largest buffer kept for the next message.
const keptBuffer = 1 << 20

// buffer is used for one message after the other.
type buffer []byte

func (b *buffer) of(size int) []byte {
	if cap(*b) < size || cap(*b) > keptBuffer {
		*b = make([]byte, size, max(size, min(2*size, keptBuffer)))
	}
	*b = (*b)[:size]
	return *b
}
