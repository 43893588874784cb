package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// spare is an address of the pods' loopback range that no pod gets: node ranges
// end long before it.
const spare = "127.64.255.254"

// portsFree looks whether pods can listen on ports, the webhook's own included. A
// program on 0.0.0.0 takes a port of every loopback address with it.
func portsFree(ctx context.Context, ports []int) error {
	var errs []error
	for _, port := range append([]int{webhookPort, webhookMetricsPort}, ports...) {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", fmt.Sprintf("%s:%d", spare, port))
		if err != nil {
			errs = append(errs, fmt.Errorf("port %d is taken on all addresses by another program, and pods of the local stack need it: end that program, or have it listen on 127.0.0.1 (%w)", port, err))
			continue
		}
		_ = l.Close() // only looked
	}
	return errors.Join(errs...)
}
