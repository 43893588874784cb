package cluster

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// port is a TCP port of 127.0.0.1 that is ours until it is released: a socket
// holds it that never listens. The program that serves it shares it by
// SO_REUSEPORT, so nobody takes it while that program is stopped, and whoever
// connects then is refused.
type port struct {
	number int
	socket int
}

// reserve takes the port with that number, 0 for any free one.
func reserve(number int) (*port, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	p := &port{number: number, socket: socket}
	if err := p.bind(); err != nil {
		p.release()
		return nil, fmt.Errorf("port 127.0.0.1:%d: %w", number, err)
	}
	return p, nil
}

// bind allows sharing only afterwards: so it fails if anybody has the port, also
// one who would share it, such as another cluster.
func (p *port) bind() error {
	if err := unix.Bind(p.socket, &unix.SockaddrInet4{Port: p.number, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(p.socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err
	}
	name, err := unix.Getsockname(p.socket)
	if err != nil {
		return err
	}
	p.number = name.(*unix.SockaddrInet4).Port
	return nil
}

// release gives the port back, once; a nil port has nothing to give.
func (p *port) release() {
	if p != nil && p.socket >= 0 {
		unix.Close(p.socket)
		p.socket = -1
	}
}
