package resync

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"golang.org/x/time/rate"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetgroup"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

// A large account (design: 100,000 selected pods, 200 groups, 300 rules), of which
// 50 groups of 500 targets are compared in a round.
const (
	benchPods   = 100_000
	benchGroups = 200
	benchRules  = 300
	benchRound  = 50
	benchBus    = "arn:aws:events:eu-west-1:111122223333:event-bus/elbridge"
	benchQueue  = "arn:aws:sqs:eu-west-1:111122223333:registrar"
)

func benchARN(g int) string {
	return fmt.Sprintf("arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/fleet-%03d/0123456789abcdef", g)
}

func benchAddress(i int) string {
	return netip.AddrFrom4([4]byte{10, byte(i / 62500), byte(i / 250 % 250), byte(1 + i%250)}).String()
}

// fleet is the account's cluster: lists and a silent stream. Nothing else is asked
// of it while nothing changes.
type fleet struct{ Cluster }

func (fleet) Each(_ context.Context, _ cluster.Scope, each func(*podevent.Pod)) (string, error) {
	for i := range benchPods {
		g := i % benchGroups
		labels := map[string]string{"app": fmt.Sprintf("service-%03d", g), "track": "stable", "pod-template-hash": "7d4b9c6f5d"}
		if i/benchGroups%25 == 0 {
			labels["track"] = "canary"
		}
		each(&podevent.Pod{
			Namespace: fmt.Sprintf("team-%02d", g%40), Name: fmt.Sprintf("service-%03d-7d4b9c6f5d-%05d", g, i), UID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i),
			ResourceVersion: fmt.Sprint(1000000 + i), NodeName: fmt.Sprintf("ip-10-200-%d-%d.eu-west-1.compute.internal", i/30/250, i/30%250), Labels: labels, ServiceAccount: "default",
			Owner:  &podevent.Owner{Kind: "ReplicaSet", Name: fmt.Sprintf("service-%03d-7d4b9c6f5d", g)},
			Ports:  []podevent.Port{{Name: strings.Clone("http"), ContainerPort: 8080, Protocol: "TCP"}, {Name: strings.Clone("metrics"), ContainerPort: 9090, Protocol: "TCP"}},
			PodIPs: []string{benchAddress(i)}, HostIP: fmt.Sprintf("10.200.%d.%d", i/30/250, i/30%250), Phase: strings.Clone("Running"), Ready: true, ContainersReady: true,
		})
	}
	return "2000000", nil
}

func (fleet) Watch(ctx context.Context, _ cluster.Scope, _ string, on func(cluster.Change)) error {
	on(cluster.Change{Kind: cluster.Opened})
	<-ctx.Done()
	return ctx.Err()
}

// account is its AWS: rules, and ELBv2 as the SDK's client sees it, without a
// network. Nothing in it changes.
type account struct {
	rules  []binding.Rule
	health map[string][]byte // by the group's part of the form
	groups []byte
	calls  map[string]int
}

func newAccount() *account {
	a := &account{health: map[string][]byte{}, calls: map[string]int{}}
	for i := range benchRules {
		g, track := i%benchGroups, `"stable","canary"`
		if i >= benchGroups {
			track = `"canary"`
		}
		a.rules = append(a.rules, binding.Rule{ARN: fmt.Sprintf("arn:aws:events:eu-west-1:111122223333:rule/elbridge/rule-%03d", i), Name: fmt.Sprintf("rule-%03d", i), Bus: "elbridge", State: "ENABLED",
			Pattern: fmt.Sprintf(`{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":{"cluster":["fleet"],"namespace":["team-%02d"],"labels":{"app":["service-%03d"],"track":[%s]}}}`, g%40, g, track)})
	}
	var groups strings.Builder
	for g := range benchGroups {
		fmt.Fprintf(&groups, "<member><TargetGroupArn>%s</TargetGroupArn><TargetGroupName>fleet-%03d</TargetGroupName><Port>8080</Port><TargetType>ip</TargetType><IpAddressType>ipv4</IpAddressType></member>", benchARN(g), g)
		var targets strings.Builder
		for i := g; i < benchPods; i += benchGroups {
			fmt.Fprintf(&targets, "<member><Target><Id>%s</Id><Port>8080</Port><AvailabilityZone>eu-west-1a</AvailabilityZone></Target><HealthCheckPort>8080</HealthCheckPort><TargetHealth><State>healthy</State></TargetHealth></member>", benchAddress(i))
		}
		a.health[fmt.Sprintf("fleet-%03d", g)] = elsewhere(answer("DescribeTargetHealth", "<TargetHealthDescriptions>"+targets.String()+"</TargetHealthDescriptions>"))
	}
	a.groups = answer("DescribeTargetGroups", "<TargetGroups>"+groups.String()+"</TargetGroups>")
	return a
}

func answer(operation, result string) []byte {
	return fmt.Appendf(nil, `<%[1]sResponse xmlns="http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/"><%[1]sResult>%[2]s</%[1]sResult><ResponseMetadata><RequestId>c534f810-f389-11e5-9192-3fff33344cfa</RequestId></ResponseMetadata></%[1]sResponse>`, operation, result)
}

// elsewhere keeps bytes in memory that is not Go's: they are not the function's.
func elsewhere(text []byte) []byte {
	m, err := syscall.Mmap(-1, 0, len(text), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	copy(m, text)
	return m
}

func (a *account) List(context.Context) ([]binding.Rule, error) { return a.rules, nil }

func (a *account) Rule(context.Context, string) (binding.Rule, error) {
	return binding.Rule{}, bus.ErrNotFound
}

func (a *account) Targets(_ context.Context, name string) ([]binding.Target, error) {
	var i int
	if _, err := fmt.Sscanf(name, "rule-%d", &i); err != nil {
		return nil, err
	}
	return []binding.Target{{ID: "t0", ARN: benchQueue, Transformer: &binding.Transformer{
		Template: fmt.Sprintf(`{"binding":{"targetGroup":%q,"port":8080},"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`, benchARN(i%benchGroups))}}}, nil
}

func (a *account) Tags(context.Context, string) (map[string]string, error) {
	return map[string]string{}, nil
}

func (a *account) Put(context.Context, []bus.Entry) ([]bus.Unsent, error) { return nil, nil }

// Do answers the SDK.
func (a *account) Do(req *http.Request) (*http.Response, error) {
	form, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	body := a.groups
	if bytes.Contains(form, []byte("Action=DescribeTargetHealth")) {
		_, name, _ := strings.Cut(string(form), "targetgroup%2F")
		body = a.health[name[:len("fleet-000")]]
	} else if !bytes.Contains(form, []byte("Action=DescribeTargetGroups")) {
		return nil, fmt.Errorf("not asked for while nothing changes: %s", form)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}, nil
}

// sdkOnly leaves the reading of answers to the SDK.
type sdkOnly struct{ *elb.Client }

func (s sdkOnly) DescribeTargetHealth(ctx context.Context, in *elb.DescribeTargetHealthInput, _ ...func(*elb.Options)) (*elb.DescribeTargetHealthOutput, error) {
	return s.Client.DescribeTargetHealth(ctx, in)
}

// quiet is a Resync after its first rounds, and a clock that only it looks at.
type quiet struct {
	*Resync
	now    time.Time
	number int
}

func (q *quiet) round(b *testing.B) {
	b.Helper()
	q.now = q.now.Add(DefaultInterval)
	q.number++
	rd := &round{run: "bench", number: q.number, began: q.now}
	q.Resync.round(b.Context(), rd)
	if len(rd.outcomes) != benchRound || len(rd.findings) > 0 || len(rd.problems) > 0 || !rd.complete {
		b.Fatalf("a round compared %d groups and found %v, %v: want %d, and nothing", len(rd.outcomes), rd.findings, rd.problems, benchRound)
	}
}

func newQuiet(b *testing.B, a *account, lean bool) *quiet {
	b.Helper()
	client := elb.NewFromConfig(aws.Config{Region: "eu-west-1", BaseEndpoint: new("http://elb.invalid"), HTTPClient: a,
		Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "secret", "")})
	groups := targetgroup.New(sdkOnly{client})
	if lean {
		groups = targetgroup.New(client)
	}
	q := &quiet{now: time.Now()}
	q.Resync = &Resync{
		Config:   Config{Settings: reconcile.Settings{BusARN: benchBus, QueueARN: benchQueue}, RunLength: DefaultRunLength, Interval: DefaultInterval, Share: DefaultShare},
		Clusters: map[string]Cluster{"fleet": fleet{}}, Groups: func(*binding.Binding) Groups { return groups }, Rules: a, Events: a,
		Meter: telemetry.NewMeter(io.Discard, time.Now, nil), Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return q.now }, Sleep: Sleep,
	}
	q.init()
	q.budget.rules = rate.NewLimiter(rate.Inf, 1)
	wanted := benchRound / DefaultInterval.Seconds() / q.budget.perSecond()
	q.budget.describe = rate.NewLimiter(q.budget.describe.Limit()*rate.Limit(wanted), 1<<30) // so many groups a round, and no waiting
	ctx, cancel := context.WithCancel(b.Context())
	listed := make(chan struct{})
	p := q.pictures["fleet"]
	go func() { defer close(listed); _ = p.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-listed })
	snapshot, err := q.rules.Fresh(ctx)
	if err != nil {
		b.Fatal(err)
	}
	p.Follow(snapshot.Bindings)
	for !p.State().Complete {
		time.Sleep(time.Millisecond)
	}
	for range benchGroups / benchRound {
		q.round(b)
	}
	return q
}

// spent is the processor time that the process has had, garbage collection included.
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// inUse is what the runtime holds of the system, as its memory limit counts it.
func inUse() float64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return float64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// BenchmarkQuietRound is a round in which nothing has changed, without the network:
// what it costs by the SDK's own reading of answers and leanly, and by how much
// garbage is waited for.
func BenchmarkQuietRound(b *testing.B) {
	a := newAccount()
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20 * 8 / 10)) // as functions/resync does
	for _, lean := range []bool{false, true} {
		for _, percent := range []int{100, 200, 400} {
			b.Run(fmt.Sprintf("lean=%v/GOGC=%d", lean, percent), func(b *testing.B) {
				debug.SetGCPercent(percent)
				q := newQuiet(b, a, lean)
				debug.FreeOSMemory() // of the first list
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				most, start := 0.0, spent()
				for b.Loop() {
					q.round(b)
					most = max(most, inUse())
				}
				cpu := spent() - start
				runtime.ReadMemStats(&after)
				n := float64(b.N)
				b.ReportMetric(cpu.Seconds()*1e3/n, "cpu-ms/round")
				b.ReportMetric(float64(after.NumGC-before.NumGC)/n, "GCs/round")
				b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/1e6/n, "MB/round")
				b.ReportMetric(most/(1<<20), "MiB")
			})
		}
	}
}
