package state

import (
	"maps"
	"strings"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// addTags returns old with more tags.
func (s *Store) addTags(old map[string]string, more []Tag) (map[string]string, error) {
	out := maps.Clone(old)
	if out == nil {
		out = map[string]string{}
	}
	seen := map[string]bool{}
	for _, t := range more {
		switch {
		case seen[t.Key]:
			return nil, core.Errorf("DuplicateTagKeys", "Tag key '%s' was specified more than once", t.Key)
		case t.Key == "" || len(t.Key) > 128 || len(t.Value) > 256:
			return nil, core.Errorf("ValidationError", "The tag '%s' must have a key of 1 to 128 characters and a value of at most 256", t.Key)
		case strings.HasPrefix(t.Key, "aws:"):
			return nil, core.Errorf("ValidationError", "The tag key '%s' is reserved: it begins with 'aws:'", t.Key)
		}
		seen[t.Key] = true
		out[t.Key] = t.Value
	}
	if len(out) > s.cfg.Limits.TagsPerResource {
		return nil, core.Errorf("TooManyTags", "The maximum number of tags '%d' has been reached", s.cfg.Limits.TagsPerResource)
	}
	return out, nil
}

// tagsOf returns where a resource of any kind keeps its tags.
func (a *scope) tagsOf(arn string) (*map[string]string, error) {
	switch {
	case strings.Contains(arn, ":targetgroup/"):
		g, err := a.group(arn)
		if err != nil {
			return nil, err
		}
		return &g.tags, nil
	case strings.Contains(arn, ":listener/"):
		l, err := a.listener(arn)
		if err != nil {
			return nil, err
		}
		return &l.tags, nil
	case strings.Contains(arn, ":loadbalancer/"):
		b, err := a.balancer(arn)
		if err != nil {
			return nil, err
		}
		return &b.tags, nil
	}
	return nil, core.Errorf("ValidationError", "'%s' is not a valid ARN of a target group, load balancer or listener", arn)
}

// Tag adds tags to resources and takes others away: to all of them, or to none.
func (s *Store) Tag(sc core.Scope, arns []string, add []Tag, remove []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.scope(sc)
	places, tags := make([]*map[string]string, len(arns)), make([]map[string]string, len(arns))
	for i, arn := range arns {
		var err error
		if places[i], err = a.tagsOf(arn); err != nil {
			return err
		}
		if tags[i], err = s.addTags(*places[i], add); err != nil {
			return err
		}
		for _, k := range remove {
			delete(tags[i], k)
		}
	}
	for i, p := range places {
		*p = tags[i]
	}
	return nil
}

// Tags returns the tags of resources, sorted by key.
func (s *Store) Tags(sc core.Scope, arns []string) ([][]Tag, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([][]Tag, len(arns))
	for i, arn := range arns {
		m, err := s.scope(sc).tagsOf(arn)
		if err != nil {
			return nil, err
		}
		out[i] = sortedTags(*m)
	}
	return out, nil
}
