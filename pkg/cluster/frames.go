package cluster

import (
	"encoding/binary"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// streamType is a watch in protobuf: frames of a length and a WatchEvent.
	streamType = runtime.ContentTypeProtobuf + ";stream=watch"
	// maxFrame is the largest frame that is read: what client-go's decoder of
	// streams reads at most. An object in etcd has 1.5 MiB.
	maxFrame = 16 << 20
	// keptFrame is the largest buffer kept for the next frame.
	keptFrame = 1 << 20
)

// frames reads the events of a stream. client-go's own reader takes a frame that
// was cut short for the stream's end.
type frames struct {
	from    io.Reader
	objects runtime.Decoder
	buffer  []byte
}

func newFrames(from io.Reader) (*frames, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return &frames{from: from, objects: protobuf.NewSerializer(scheme, scheme)}, nil
}

// next returns the next event: io.EOF after the last one, io.ErrUnexpectedEOF
// within one.
func (f *frames) next() (watch.EventType, runtime.Object, error) {
	var size [4]byte
	if _, err := io.ReadFull(f.from, size[:]); err != nil {
		return "", nil, err
	}
	n := int(binary.BigEndian.Uint32(size[:]))
	if n > maxFrame {
		return "", nil, fmt.Errorf("a frame of %d bytes: want at most %d", n, maxFrame)
	}
	if cap(f.buffer) < n || cap(f.buffer) > keptFrame {
		f.buffer = make([]byte, n)
	}
	f.buffer = f.buffer[:n]
	if _, err := io.ReadFull(f.from, f.buffer); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return "", nil, err
	}
	var e metav1.WatchEvent
	if err := e.Unmarshal(f.buffer); err != nil {
		return "", nil, fmt.Errorf("an event that is not protobuf: %w", err)
	}
	object, _, err := f.objects.Decode(e.Object.Raw, nil, nil)
	if err != nil {
		return "", nil, fmt.Errorf("an event's object: %w", err)
	}
	return watch.EventType(e.Type), object, nil
}
