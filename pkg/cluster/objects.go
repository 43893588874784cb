package cluster

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/elbridge/elbridge/pkg/podevent"
)

const (
	// magic begins every object in Kubernetes' protobuf.
	magic = "k8s\x00"
	// readAhead is read of an answer at once: some pods, so that gunzip and TLS are
	// not asked for each of their fields.
	readAhead = 64 << 10
	// maxJSON is the largest answer that is read in JSON, which is kept whole: a page
	// of 500 pods of 256 KiB.
	maxJSON = pageSize * 256 << 10
)

// objects reads one answer after the other, and keeps one pod's bytes of it.
type objects struct {
	ahead  *bufio.Reader
	buffer buffer
}

func newObjects() *objects { return &objects{ahead: bufio.NewReaderSize(nil, readAhead)} }

// about is what a list says of itself.
type about struct{ resourceVersion, next string }

// list reads a PodList: told is called with what it says of itself, which comes
// before its pods, then each for every pod. An error means that there is more,
// or other, than each was called with.
func (o *objects) list(body io.Reader, told func(about) error, each func(Inspection)) error {
	return o.answer(body, "PodList", func(s *section) error { return o.podList(s, told, each) })
}

// pod reads a Pod.
func (o *objects) pod(body io.Reader) (p *podevent.Pod, err error) {
	return p, o.answer(body, "Pod", func(s *section) error {
		p, err = o.wholePod(s)
		return err
	})
}

func (o *objects) wholePod(s *section) (*podevent.Pod, error) {
	raw, err := s.take(s.left, &o.buffer)
	if err != nil {
		return nil, err
	}
	i, err := translate(raw)
	return i.Pod, err
}

// answer reads an object of a kind, in protobuf, or in JSON from who knows
// nothing else: that is turned into protobuf first, so that there is one
// translation.
func (o *objects) answer(body io.Reader, kind string, object func(*section) error) error {
	o.ahead.Reset(body)
	defer o.ahead.Reset(nil)
	if first, err := o.ahead.Peek(1); err == nil && first[0] == '{' {
		b, err := protobufOf(o.ahead)
		if err != nil {
			return err
		}
		return o.enveloped(bytes.NewReader(b), kind, object)
	}
	return o.enveloped(o.ahead, kind, object)
}

func protobufOf(json io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(json, maxJSON+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxJSON {
		return nil, fmt.Errorf("an answer in JSON of more than %d bytes: want protobuf, as was asked for", maxJSON)
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	v, err := runtime.Decode(serializer.NewCodecFactory(scheme).UniversalDeserializer(), b)
	if err != nil {
		return nil, err
	}
	return runtime.Encode(protobuf.NewSerializer(scheme, scheme), v)
}

// enveloped reads an object in its envelope: the magic, then runtime.Unknown with
// the object's type and itself, to its source's end. A Status in its place is an
// error of the API server's own class.
func (o *objects) enveloped(from source, kind string, object func(*section) error) error {
	var begins [len(magic)]byte
	if _, err := io.ReadFull(from, begins[:]); err != nil {
		return fmt.Errorf("an answer without an object: %w", cut(err))
	}
	if string(begins[:]) != magic {
		return fmt.Errorf("an answer that begins with %q: want an object in Kubernetes' protobuf", begins)
	}
	envelope, is, seen := everything(from), "", false
	for {
		f, err := envelope.next()
		switch {
		case err == io.EOF && !seen: //nolint:errorlint // next's own
			return fmt.Errorf("an envelope without an object: %w", io.ErrUnexpectedEOF)
		case err == io.EOF: //nolint:errorlint // next's own
			return nil
		case err != nil:
			return fmt.Errorf("an object's envelope: %w", err)
		}
		switch {
		case !f.inside && (f.number == unknownTypeMeta || f.number == unknownRaw):
			return fmt.Errorf("an object's envelope: %w", f.mistyped())
		case f.number == unknownTypeMeta:
			is, err = o.typeOf(envelope, f.size)
		case f.number == unknownRaw && seen:
			return fmt.Errorf("a second %s in one envelope", is)
		case f.number == unknownRaw:
			seen = true
			err = o.enclosed(envelope, f.size, is, kind, object)
		case f.inside:
			err = envelope.skip(f.size)
		}
		if err != nil {
			return err
		}
	}
}

func (o *objects) typeOf(envelope *section, size uint64) (string, error) {
	b, err := envelope.take(size, &o.buffer)
	if err != nil {
		return "", fmt.Errorf("an object's type: %w", err)
	}
	var group, kind string
	m := read(b)
	for m.next() {
		switch m.number {
		case typeMetaAPIVersion:
			group = m.text()
		case typeMetaKind:
			kind = m.text()
		}
	}
	if m.err != nil {
		return "", fmt.Errorf("an object's type: %w", m.err)
	}
	if group != "v1" {
		return group + " " + kind, nil
	}
	return kind, nil
}

func (o *objects) enclosed(envelope *section, size uint64, is, want string, object func(*section) error) error {
	s, err := envelope.within(size)
	switch {
	case err != nil:
		return fmt.Errorf("a %s: %w", is, err)
	case is == "Status":
		return o.refusal(s)
	case is != want:
		return fmt.Errorf("an object of kind %q: want %s", is, want)
	}
	if err := object(s); err != nil {
		return fmt.Errorf("a %s: %w", is, err)
	}
	return nil
}

// refusal is the error that a Status tells of.
func (o *objects) refusal(s *section) error {
	b, err := s.take(s.left, &o.buffer)
	if err != nil {
		return fmt.Errorf("a Status: %w", err)
	}
	var status metav1.Status
	if err := status.Unmarshal(b); err != nil {
		return fmt.Errorf("a Status: %w", err)
	}
	if status.Status == metav1.StatusSuccess {
		return fmt.Errorf("a Status of success in place of an object: %s", status.Message)
	}
	return apierrors.FromObject(&status)
}

func (o *objects) podList(s *section, told func(about) error, each func(Inspection)) error {
	var a about
	said := false
	for {
		f, err := s.next()
		switch {
		case err == io.EOF && !said: //nolint:errorlint // next's own
			return told(a)
		case err == io.EOF: //nolint:errorlint // next's own
			return nil
		case err != nil:
			return err
		case f.number != podListMetadata && f.number != podListItems:
			if err := s.skip(f.size); err != nil { // nothing, if it is no field with a length
				return err
			}
			continue
		case !f.inside:
			return f.mistyped()
		}
		b, err := s.take(f.size, &o.buffer)
		if err != nil {
			return err
		}
		if f.number == podListMetadata {
			said = true
			if err := a.read(b); err != nil {
				return fmt.Errorf("its metadata: %w", err)
			}
			if err := told(a); err != nil {
				return err
			}
			continue
		}
		p, err := translate(b)
		if err != nil {
			return fmt.Errorf("a pod of it: %w", err)
		}
		each(p)
	}
}

func (a *about) read(b []byte) error {
	m := read(b)
	for m.next() {
		switch m.number {
		case listMetaResourceVersion:
			a.resourceVersion = m.text()
		case listMetaContinue:
			a.next = m.text()
		}
	}
	return m.err
}
