package stack

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
)

// TestGate shuts the way under a connection, and opens it again.
func TestGate(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	g, err := newGate(echo.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.run(ctx) }()
	say := func() (net.Conn, error) {
		c, err := net.Dial("tcp", g.Addr())
		if err != nil {
			return nil, err
		}
		if _, err := c.Write([]byte("x")); err != nil {
			return nil, err
		}
		_, err = io.ReadFull(c, make([]byte, 1))
		return c, err
	}
	open, err := say()
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	g.Shut()
	if _, err := open.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlived the gate's closing")
	}
	if _, err := say(); err == nil {
		t.Error("a connection went through the shut gate")
	}
	g.Open()
	if _, err := say(); err != nil {
		t.Errorf("opened again: %v", err)
	}
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, net.ErrClosed) {
		t.Errorf("the gate ended with %v", err)
	}
}
