package dataplane_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// BenchmarkRequest sends requests one after the other, straight to a target and
// through a load balancer with a few and with many targets.
func BenchmarkRequest(b *testing.B) {
	send := func(b *testing.B, url string) {
		b.ReportAllocs()
		for b.Loop() {
			resp, err := client.Get(url)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				b.Fatal(resp.Status)
			}
		}
	}
	target := web(b, "a", nil)
	b.Run("direct", func(b *testing.B) { send(b, "http://"+target+"/") })
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprint("targets=", n), func(b *testing.B) {
			f := newFront(b, route.Application)
			members := make([]string, n)
			for i := range members {
				members[i] = target
				if i > 0 { // these are unhealthy: looked at, not used
					members[i] = fmt.Sprintf("127.0.0.2:%d!", i)
				}
			}
			f.Announce(f.table("g=" + strings.Join(members, ",")))
			send(b, f.url("/"))
		})
	}
}
