// Command lister reads the pods of a cluster as resync does, or in a way to
// compare that with, and prints as JSON what it cost: it is a process of its own
// so that nothing else is in its figures.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/podevent"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the cluster's kubeconfig")
	how := flag.String("how", "pods", "each: pkg/cluster's list, a page at a time; pods: the same, all kept; watch: its stream after a list; decode: the pages into corev1.PodList and no further")
	pageSize := flag.Int("page", 500, "pods in a page, for decode")
	lasts := flag.Duration("for", time.Minute, "how long to watch")
	profile := flag.String("profile", "", "file for a CPU profile")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *how, *kubeconfig, *pageSize, *lasts, *profile); err != nil {
		fmt.Fprintln(os.Stderr, "lister:", err)
		os.Exit(1) //nolint:gocritic // the process is over, and its signals with it
	}
}

func run(ctx context.Context, how, kubeconfig string, pageSize int, lasts time.Duration, profile string) error {
	end, err := profileTo(profile)
	if err != nil {
		return err
	}
	defer end()
	client := (&cluster.Dialer{UserAgent: "elbridge-bench/dev", Now: time.Now}).Client(cluster.Config{Name: "fleet", Kubeconfig: kubeconfig})
	start := begin()
	pods := 0
	var kept []*podevent.Pod
	switch how {
	case "each":
		_, err = client.Each(ctx, cluster.Scope{}, func(*podevent.Pod) { pods++ })
	case "pods":
		_, err = client.Each(ctx, cluster.Scope{}, func(p *podevent.Pod) { kept = append(kept, p) })
		pods = len(kept)
	case "watch":
		start, pods, err = watch(ctx, client, lasts)
	case "decode":
		pods, err = decode(ctx, kubeconfig, pageSize)
	default:
		err = fmt.Errorf("--how %s: want each, pods, watch or decode", how)
	}
	if err != nil {
		return err
	}
	c, err := start.cost()
	if err != nil {
		return err
	}
	c.Pods = pods
	return json.NewEncoder(os.Stdout).Encode(c)
}

// watch reads a stream after a list, whose cost isn't counted, and returns how
// many events came. Its line "listed" says when changes can begin.
func watch(ctx context.Context, client *cluster.Client, lasts time.Duration) (begun, int, error) {
	revision, err := client.Each(ctx, cluster.Scope{}, func(*podevent.Pod) {})
	if err != nil {
		return begun{}, 0, err
	}
	fmt.Fprintln(os.Stderr, "listed")
	start, events := begin(), 0
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	err = client.Watch(ctx, cluster.Scope{}, revision, func(ch cluster.Change) {
		if ch.Kind == cluster.Changed {
			events++
		}
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return start, events, err
}
