package cluster

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/elbridge/elbridge/pkg/podevent"
)

// streamType is a watch in protobuf: frames of a length and a WatchEvent.
const streamType = runtime.ContentTypeProtobuf + ";stream=watch"

// frames reads the events of a stream. client-go's own reader takes a frame that
// was cut short for the stream's end.
type frames struct {
	from    io.Reader
	objects *objects
	buffer  buffer
}

func newFrames(from io.Reader) *frames { return &frames{from: from, objects: &objects{}} }

// next returns the next event with its pod: io.EOF after the last one,
// io.ErrUnexpectedEOF within one. An event that tells of an error is that error.
func (f *frames) next() (watch.EventType, *podevent.Pod, error) {
	var size [4]byte
	if _, err := io.ReadFull(f.from, size[:]); err != nil {
		return "", nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxMessage {
		return "", nil, fmt.Errorf("a frame of %d bytes: want at most %d", n, maxMessage)
	}
	b := f.buffer.of(int(n))
	if _, err := io.ReadFull(f.from, b); err != nil {
		return "", nil, cut(err)
	}
	kind, object, err := eventOf(b)
	if err != nil {
		return "", nil, fmt.Errorf("an event that is not protobuf: %w", err)
	}
	var p *podevent.Pod
	err = f.objects.enveloped(bytes.NewReader(object), "Pod", func(s *section) error {
		p, err = f.objects.wholePod(s)
		return err
	})
	if err != nil {
		return "", nil, fmt.Errorf("an event's object: %w", err)
	}
	return kind, p, nil
}

// eventOf reads a WatchEvent, whose object is a RawExtension.
func eventOf(b []byte) (kind watch.EventType, object []byte, err error) {
	m := read(b)
	for m.next() {
		switch m.number {
		case watchEventType:
			kind = watch.EventType(m.text())
		case watchEventObject:
			extension := m.inner()
			for extension.next() {
				if extension.number == rawExtensionRaw && extension.is(protowire.BytesType) {
					object = extension.bytes
				}
			}
			m.check(extension.err)
		}
	}
	return kind, object, m.err
}
