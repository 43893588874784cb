package proxy_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/elbridge/elbridge/local/node/internal/proxy"
)

const bound = 10 * time.Second // of any wait here

// echo answers every connection on a loopback address with a name, then echoes.
func echo(t *testing.T, name string) netip.AddrPort {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.WriteString(c, name)
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return netip.MustParseAddrPort(ln.Addr().String())
}

func freePort(t *testing.T) netip.AddrPort {
	t.Helper()
	ln, err := net.Listen("tcp", "127.96.255.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return netip.MustParseAddrPort(ln.Addr().String())
}

func dial(t *testing.T, to netip.AddrPort) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", to.String(), bound)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(bound))
	return c
}

// say sends text and reads as many bytes as want has.
func say(t *testing.T, c net.Conn, text, want string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("read %q, %v, want %q", got, err, want)
	}
}

func TestProxyFollowsItsTable(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := proxy.New(slog.New(slog.DiscardHandler))
	frontend, one, two := freePort(t), echo(t, "1"), echo(t, "2")

	p.Update(ctx, proxy.Table{frontend: {one, two}})
	first := dial(t, frontend)
	say(t, first, "", "1")
	say(t, dial(t, frontend), "", "2")
	say(t, dial(t, frontend), "", "1")

	p.Update(ctx, proxy.Table{frontend: {two}})
	say(t, dial(t, frontend), "", "2")
	say(t, first, "hello", "hello") // keeps its backend

	p.Update(ctx, proxy.Table{})
	if c, err := net.DialTimeout("tcp", frontend.String(), bound); err == nil {
		_ = c.Close()
		t.Error("a frontend without backends accepts connections")
	}
	say(t, first, "still", "still")

	p.Update(ctx, proxy.Table{frontend: {one}})
	half := dial(t, frontend)
	say(t, half, "bye", "1bye")
	_ = half.(*net.TCPConn).CloseWrite()
	if rest, err := io.ReadAll(half); err != nil || len(rest) != 0 {
		t.Errorf("after half a close: %q, %v", rest, err)
	}

	cancel()
	p.Wait()
	if _, err := first.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlives the proxy")
	}
}

func TestDeadBackendResetsTheConnection(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := proxy.New(slog.New(slog.DiscardHandler))
	frontend, dead := freePort(t), freePort(t)
	p.Update(ctx, proxy.Table{frontend: {dead}})
	c, err := net.DialTimeout("tcp", frontend.String(), bound)
	if err == nil { // the reset may come before the connection is seen to stand
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(bound))
		_, err = c.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("error %v, want a reset", err)
	}
	cancel()
	p.Wait()
}
