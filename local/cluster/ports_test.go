package cluster

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReservedPort(t *testing.T) {
	p, err := reserve(0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.release()
	address := net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: p.number}

	if q, err := reserve(p.number); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("reserved port %d twice: %v", p.number, err)
		q.release()
	}
	if _, err := net.Dial("tcp", address.String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialling a reserved port that nobody serves: %v, want it refused", err)
	}
	if l, err := net.Listen("tcp", address.String()); err == nil {
		t.Errorf("a server that does not share took port %d", p.number)
		l.Close()
	}

	shared := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		if err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}); err != nil {
			return err
		}
		return failed
	}}
	for range 2 { // served, stopped, served again
		l, err := shared.Listen(context.Background(), "tcp", address.String())
		if err != nil {
			t.Fatalf("the program for which port %d is kept: %v", p.number, err)
		}
		for range 20 { // none may end at the socket that only holds the port
			c, err := net.Dial("tcp", address.String())
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
		}
		if q, err := reserve(p.number); err == nil {
			t.Errorf("reserved port %d while it is served", p.number)
			q.release()
		}
		l.Close()
	}
}
