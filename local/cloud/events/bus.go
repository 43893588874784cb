package events

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/policy"
	"github.com/elbridge/elbridge/pkg/eventpattern"
)

const defaultBus = "default"

type busID struct {
	core.Scope
	name string
}

func (id busID) arn() string { return id.ARN("events", "event-bus/"+id.name) }

type bus struct {
	id          busID
	description string
	kmsKey      string
	deadLetter  *deadLetterConfig
	policy      string
	allow       *policy.Policy
	tags        map[string]string
	created     time.Time
	changed     time.Time

	rules    map[string]*rule
	compiled *compiled // nil after a change
}

// compiled is what an event is matched with: the enabled rules with patterns.
type compiled struct {
	set   *eventpattern.Set
	rules []*rule
}

func newBus(id busID, now time.Time) *bus {
	return &bus{id: id, allow: &policy.Policy{}, tags: map[string]string{}, created: now, changed: now, rules: map[string]*rule{}}
}

// matcher returns the compiled rules. The caller holds the lock for writing.
func (b *bus) matcher() *compiled {
	if b.compiled == nil {
		c := &compiled{}
		var patterns []*eventpattern.Pattern
		for _, name := range slices.Sorted(maps.Keys(b.rules)) {
			if r := b.rules[name]; r.enabled() && r.pattern != nil {
				c.rules, patterns = append(c.rules, r), append(patterns, r.pattern)
			}
		}
		c.set = eventpattern.NewSet(patterns)
		b.compiled = c
	}
	return b.compiled
}

// busID reads a bus name or ARN; empty means the default bus.
func (s *Service) busID(call *core.Call, nameOrARN string) (busID, error) {
	if nameOrARN == "" {
		nameOrARN = defaultBus
	}
	if !strings.HasPrefix(nameOrARN, "arn:") {
		return busID{call.Scope, nameOrARN}, nil
	}
	id, ok := parseBusARN(nameOrARN)
	if !ok {
		return busID{}, invalid("Parameter EventBusName is not valid. Reason: Provided Arn is not in correct format.")
	}
	return id, nil
}

func parseBusARN(arn string) (busID, bool) {
	p := strings.SplitN(arn, ":", 6)
	if len(p) != 6 || p[2] != "events" {
		return busID{}, false
	}
	name, ok := strings.CutPrefix(p[5], "event-bus/")
	return busID{core.Scope{Account: p[4], Region: p[3]}, name}, ok && name != ""
}

// lookup returns a bus, or nil. A default bus exists without having been
// created. The caller holds the lock for writing.
func (s *Service) lookup(id busID) *bus {
	b := s.buses[id]
	if b == nil && id.name == defaultBus {
		b = newBus(id, s.server.Clock.Now())
		s.buses[id] = b
	}
	return b
}

// find returns the bus that a control call names. The caller holds the lock
// for writing.
func (s *Service) find(call *core.Call, nameOrARN string) (*bus, error) {
	id, err := s.busID(call, nameOrARN)
	if err != nil {
		return nil, err
	}
	b := s.lookup(id)
	if b == nil || id.Region != call.Region {
		return nil, notFound("Event bus %s does not exist.", id.name)
	}
	if id.Account != call.Account && !b.allow.Allows(policy.Request{Account: call.Account, ARN: call.Principal.ARN,
		Action: "events:" + call.Operation, Resource: id.arn()}) {
		return nil, denied(call, id.arn())
	}
	return b, nil
}

// busName is the part of a request that names a bus.
type busName struct{ EventBusName string }

func (n busName) bus() string { return n.EventBusName }

// onBus decodes a request and calls do with the bus that it names, under the
// lock.
func onBus[R interface{ bus() string }](s *Service, call *core.Call, do func(*bus, R) (any, error)) (any, error) {
	var in R
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.find(call, in.bus())
	if err != nil {
		return nil, err
	}
	return do(b, in)
}

var busForm = regexp.MustCompile(`^[/.\-_A-Za-z0-9]{1,256}$`)

type deadLetterConfig struct {
	Arn string `json:",omitempty"`
}

type busAnswer struct {
	Arn, Name        string            `json:",omitempty"`
	EventBusArn      string            `json:",omitempty"`
	Description      string            `json:",omitempty"`
	KmsKeyIdentifier string            `json:",omitempty"`
	Policy           string            `json:",omitempty"`
	DeadLetterConfig *deadLetterConfig `json:",omitempty"`
	CreationTime     float64           `json:",omitempty"`
	LastModifiedTime float64           `json:",omitempty"`
}

func (b *bus) show() busAnswer {
	return busAnswer{Arn: b.id.arn(), Name: b.id.name, Description: b.description, KmsKeyIdentifier: b.kmsKey, Policy: b.policy,
		DeadLetterConfig: b.deadLetter, CreationTime: seconds(b.created), LastModifiedTime: seconds(b.changed)}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func (s *Service) createBus(call *core.Call) (any, error) {
	var in struct {
		Name, Description, KmsKeyIdentifier string
		DeadLetterConfig                    *deadLetterConfig
		Tags                                []tag
	}
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	if err := constraint("name", in.Name, busForm, `[/\.\-_A-Za-z0-9]+`, 256); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := busID{call.Scope, in.Name}
	if s.lookup(id) != nil {
		return nil, core.Errorf("ResourceAlreadyExistsException", "Event bus %s already exists.", in.Name)
	}
	n := 0
	for other := range s.buses {
		if other.Scope == call.Scope {
			n++
		}
	}
	if n >= s.limits.Buses {
		return nil, limitExceeded()
	}
	b := newBus(id, call.Time)
	b.description, b.kmsKey, b.deadLetter = in.Description, in.KmsKeyIdentifier, in.DeadLetterConfig
	addTags(b.tags, in.Tags)
	s.buses[id] = b
	return busAnswer{EventBusArn: id.arn(), Description: in.Description, KmsKeyIdentifier: in.KmsKeyIdentifier, DeadLetterConfig: in.DeadLetterConfig}, nil
}

func (s *Service) deleteBus(call *core.Call) (any, error) {
	var in struct{ Name string }
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	if in.Name == defaultBus {
		return nil, invalid("Cannot delete event bus default.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := busID{call.Scope, in.Name}
	if b := s.buses[id]; b != nil && len(b.rules) > 0 {
		return nil, invalid("Event bus %s cannot be deleted since it has rules.", in.Name)
	}
	delete(s.buses, id)
	return nil, nil
}

func (s *Service) describeBus(call *core.Call) (any, error) {
	var in struct{ Name string }
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.find(call, in.Name)
	if err != nil {
		return nil, err
	}
	return b.show(), nil
}

func (s *Service) listBuses(call *core.Call) (any, error) {
	var in struct {
		NamePrefix, NextToken string
		Limit                 json.Number
	}
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookup(busID{call.Scope, defaultBus})
	var names []string
	for id := range s.buses {
		if id.Scope == call.Scope && strings.HasPrefix(id.name, in.NamePrefix) {
			names = append(names, id.name)
		}
	}
	page, next, err := paged(names, in.Limit, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := struct {
		EventBuses []busAnswer
		NextToken  string `json:",omitempty"`
	}{[]busAnswer{}, next}
	for _, name := range page {
		out.EventBuses = append(out.EventBuses, s.buses[busID{call.Scope, name}].show())
	}
	return out, nil
}
