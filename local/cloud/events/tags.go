package events

import (
	"maps"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/local/cloud/core"
)

type tag struct{ Key, Value string }

// maxTags is the number of tags that a resource may have.
const maxTags = 50

func addTags(to map[string]string, tags []tag) {
	for _, t := range tags {
		to[t.Key] = t.Value
	}
}

type tagRequest struct {
	ResourceARN string
	Tags        []tag
	TagKeys     []string
}

// withTags decodes a request and calls do with the tags of the rule or bus.
func (s *Service) withTags(call *core.Call, do func(tags map[string]string, in tagRequest) (any, error)) (any, error) {
	var in tagRequest
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tags := s.tagsOf(call, in.ResourceARN)
	if tags == nil {
		return nil, notFound("Resource %s does not exist.", in.ResourceARN)
	}
	return do(tags, in)
}

func (s *Service) tagsOf(call *core.Call, arn string) map[string]string {
	if id, ok := parseBusARN(arn); ok {
		if b := s.lookup(id); b != nil && id.Scope == call.Scope {
			return b.tags
		}
		return nil
	}
	if r := s.ruleByARN(arn); r != nil && strings.HasPrefix(arn, call.ARN("events", "rule/")) {
		return r.tags
	}
	return nil
}

// ruleByARN returns the rule of an ARN, or nil. The caller holds the lock for
// writing.
func (s *Service) ruleByARN(arn string) *rule {
	p := strings.SplitN(arn, ":", 6)
	if len(p) != 6 || p[2] != "events" || !strings.HasPrefix(p[5], "rule/") {
		return nil
	}
	path := strings.TrimPrefix(p[5], "rule/")
	busName, name := defaultBus, path
	if i := strings.LastIndex(path, "/"); i >= 0 {
		busName, name = path[:i], path[i+1:]
	}
	b := s.lookup(busID{scopeOf(arn), busName})
	if b == nil {
		return nil
	}
	return b.rules[name]
}

func (s *Service) tag(call *core.Call) (any, error) {
	return s.withTags(call, func(tags map[string]string, in tagRequest) (any, error) {
		after := maps.Clone(tags)
		addTags(after, in.Tags)
		if len(after) > maxTags {
			return nil, limitExceeded()
		}
		addTags(tags, in.Tags)
		return nil, nil
	})
}

func (s *Service) untag(call *core.Call) (any, error) {
	return s.withTags(call, func(tags map[string]string, in tagRequest) (any, error) {
		for _, key := range in.TagKeys {
			delete(tags, key)
		}
		return nil, nil
	})
}

func (s *Service) listTags(call *core.Call) (any, error) {
	return s.withTags(call, func(tags map[string]string, _ tagRequest) (any, error) {
		out := []tag{}
		for _, key := range slices.Sorted(maps.Keys(tags)) {
			out = append(out, tag{key, tags[key]})
		}
		return map[string]any{"Tags": out}, nil
	})
}

// scopeOf is the account and region of an ARN.
func scopeOf(arn string) core.Scope {
	p := strings.SplitN(arn, ":", 6)
	if len(p) != 6 {
		return core.Scope{}
	}
	return core.Scope{Account: p[4], Region: p[3]}
}
