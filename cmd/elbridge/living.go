package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/explain"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/preview"
)

// livingOptions are the flags of commands that compare rules with living groups.
type livingOptions struct {
	viewOptions
	onlyCluster bool
}

func (o *livingOptions) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.onlyCluster, "only-cluster", false, "the cluster is the only one: rules that name none cover no other")
	o.viewOptions.add(cmd)
}

// living is what such a command reads from.
type living struct {
	*view
	bus func(context.Context) (busFacts, error)
}

// busFacts are what a bus says of itself.
type busFacts struct {
	arn  string
	tags map[string]string
}

// account and region are those of the bus.
func (b busFacts) account() string { return arnPart(b.arn, 4) }
func (b busFacts) region() string  { return arnPart(b.arn, 3) }

func arnPart(arn string, i int) string {
	if parts := strings.Split(arn, ":"); len(parts) > i {
		return parts[i]
	}
	return ""
}

func (o *livingOptions) living(ctx context.Context) (*living, error) {
	v, err := o.view(ctx)
	if err != nil {
		return nil, err
	}
	sdk, err := o.shared.aws(ctx)
	if err != nil {
		return nil, err
	}
	events := eventbridge.NewFromConfig(sdk)
	return &living{view: v,
		bus: func(ctx context.Context) (busFacts, error) {
			arn, err := bus.Exists(ctx, events, o.shared.bus)
			if err != nil {
				return busFacts{}, err
			}
			tags, err := bus.NewRules(events, o.shared.bus).Tags(ctx, arn)
			return busFacts{arn: arn, tags: tags}, err
		}}, nil
}

// world is what the comparison of rules with groups stands on, as far as bindings
// need it: the groups that were surveyed, and the pods of the cluster, if there is
// one.
func (o *livingOptions) world(ctx context.Context, l *living, b busFacts, bs []binding.Binding, groups *surveyed) (*preview.World, error) {
	w := &preview.World{Annotations: o.cluster.allowList(), Account: b.account(), Region: b.region(), At: time.Now()}
	seen := map[string]bool{}
	for _, g := range groups.byRef {
		if g.ARN != "" && !seen[g.ARN] {
			seen[g.ARN] = true
			w.Groups = append(w.Groups, previewed(g, b))
		}
	}
	if l.pods == nil {
		return w, nil
	}
	name, err := o.cluster.clusterName(bs)
	if err != nil {
		return nil, err
	}
	c, err := l.pods(name)
	if err != nil {
		return nil, err
	}
	listed, err := c.Inspect(ctx, "", "")
	if err != nil {
		return nil, err
	}
	for _, p := range listed {
		w.Pods = append(w.Pods, claim.Seen{Cluster: name, Pod: p.Pod})
	}
	w.Read = []string{name}
	if o.onlyCluster {
		w.Clusters = w.Read
	}
	w.Ready, err = readyNodes(ctx, c, w)
	return w, err
}

// previewed is a group as the comparison takes it.
func previewed(g explain.Group, b busFacts) preview.Group {
	out := preview.Group{Group: g.Group.Group, Name: g.Name, Targets: g.Targets,
		Owned: binding.Owns(g.Tags[binding.OwnerTag], b.arn, g.ARN), Frozen: binding.Frozen(g.Tags) || binding.Frozen(b.tags)}
	if g.Problem != lint.Known {
		out.Problem = problemText(g.Group)
	}
	return out
}

func problemText(g lint.Group) string {
	if g.Detail == "" {
		return string(g.Problem)
	}
	return fmt.Sprintf("%s: %s", g.Problem, g.Detail)
}

// nodeReader reads nodes; a podReader may be one.
type nodeReader interface {
	Node(ctx context.Context, name string) (cluster.Node, error)
}

// nodeReads bounds the nodes that are read at a time, maxNodes those that are
// read at all: the end of a pod on another one is no witness (I9).
const (
	nodeReads = 8
	maxNodes  = 200
)

// readyNodes reads the nodes of ended pods whose addresses groups hold: only there
// does it matter. A node that can't be read is not known to be Ready.
func readyNodes(ctx context.Context, c podReader, w *preview.World) (func(cluster, node string) bool, error) {
	nodes, ok := c.(nodeReader)
	if !ok {
		return nil, nil
	}
	held := map[string]bool{}
	for _, g := range w.Groups {
		for k := range g.Targets {
			held[k.ID] = true
		}
	}
	asked, ready := map[string]bool{}, map[string]bool{}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(nodeReads)
	for _, p := range w.Pods {
		if asked[p.NodeName] || p.NodeName == "" || len(asked) >= maxNodes || !ended(p.Pod) || !holds(held, p.Pod) {
			continue
		}
		asked[p.NodeName] = true
		g.Go(func() error {
			n, err := nodes.Node(ctx, p.NodeName)
			mu.Lock()
			defer mu.Unlock()
			ready[p.NodeName] = err == nil && n.Ready
			return nil
		})
	}
	_ = g.Wait() // what can't be read is not Ready
	return func(_, node string) bool { return ready[node] }, ctx.Err()
}

func ended(p *podevent.Pod) bool { return p.Terminating || p.Finished() }

func holds(held map[string]bool, p *podevent.Pod) bool {
	for _, f := range []claim.Family{claim.IPv4, claim.IPv6} {
		for _, a := range claim.Addresses(p.PodIPs, f) {
			if held[a] {
				return true
			}
		}
	}
	return false
}

// withARNs are bindings with the ARNs of their groups. Those of a group that does
// not exist, or of several, cover nothing and are left out; one whose group was
// not read keeps no ARN: it may be of any group.
func withARNs(bs []binding.Binding, groups *surveyed) []binding.Binding {
	var out []binding.Binding
	for _, b := range bs {
		switch g := groups.byRef[lint.Ref(b.Group)]; {
		case g.Problem == lint.NotFound, g.Problem == lint.Ambiguous:
			continue
		case g.ARN != "":
			b.Group = binding.GroupRef{ARN: g.ARN}
		case b.Group.ARN == "":
			b.Group = binding.GroupRef{}
		}
		out = append(out, b)
	}
	return out
}

// needsCluster is the error of commands that say nothing without pods.
func needsCluster(l *living) error {
	if l.pods == nil {
		return errors.New("no cluster: give --kubeconfig or --eks-cluster, or set KUBECONFIG")
	}
	return nil
}
