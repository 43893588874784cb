// Package environ builds the environment and the arguments of a container: fields
// of the pod, $(VAR) references, and, for processes that run on this machine
// without a file system and a network of their own, the places where their mounts
// and addresses really are. It is pure but for the Source it reads through.
package environ

import (
	"context"
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/elbridge/elbridge/local/node/internal/volume"
)

// Variables is an environment; a later value of a name replaces an earlier one.
type Variables struct {
	names  []string
	values map[string]string
}

// Set sets a variable.
func (v *Variables) Set(name, value string) {
	if v.values == nil {
		v.values = map[string]string{}
	}
	if _, known := v.values[name]; !known {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

// Has says whether a variable is set.
func (v *Variables) Has(name string) bool {
	_, ok := v.values[name]
	return ok
}

// Expand replaces $(NAME) by the variable's value. $$ is a dollar sign; an
// unknown name stays as it is written.
func (v *Variables) Expand(s string) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i == len(s)-1 {
			out.WriteString(s)
			return out.String()
		}
		out.WriteString(s[:i])
		s = s[i:]
		switch {
		case s[1] == '$':
			out.WriteByte('$')
			s = s[2:]
		case s[1] == '(' && strings.IndexByte(s, ')') > 0:
			end := strings.IndexByte(s, ')')
			if value, known := v.values[s[2:end]]; known {
				out.WriteString(value)
			} else {
				out.WriteString(s[:end+1])
			}
			s = s[end+1:]
		default:
			out.WriteByte('$')
			s = s[1:]
		}
	}
}

// List returns NAME=value in the order of first setting, each value passed
// through rewrite.
func (v *Variables) List(rewrite func(name, value string) string) []string {
	list := make([]string, 0, len(v.names))
	for _, name := range v.names {
		list = append(list, name+"="+rewrite(name, v.values[name]))
	}
	return list
}

// Build adds the variables that a container declares, envFrom first.
func (v *Variables) Build(ctx context.Context, src volume.Source, pod *v1.Pod, c *v1.Container) error {
	for _, from := range c.EnvFrom {
		if err := v.addFrom(ctx, src, pod.Namespace, from); err != nil {
			return err
		}
	}
	for i := range c.Env {
		e := &c.Env[i]
		value, set, err := v.value(ctx, src, pod, c, e)
		if err != nil {
			return fmt.Errorf("container %q, variable %s: %w", c.Name, e.Name, err)
		}
		if set {
			v.Set(e.Name, value)
		}
	}
	return nil
}

func (v *Variables) addFrom(ctx context.Context, src volume.Source, namespace string, from v1.EnvFromSource) error {
	var data map[string][]byte
	var err error
	var optional *bool
	switch {
	case from.SecretRef != nil:
		data, err = src.Secret(ctx, namespace, from.SecretRef.Name)
		optional = from.SecretRef.Optional
	case from.ConfigMapRef != nil:
		data, err = src.ConfigMap(ctx, namespace, from.ConfigMapRef.Name)
		optional = from.ConfigMapRef.Optional
	}
	if err != nil && !(errors.Is(err, volume.ErrNotFound) && isTrue(optional)) {
		return fmt.Errorf("envFrom: %w", err)
	}
	for key, value := range data {
		v.Set(from.Prefix+key, string(value))
	}
	return nil
}

func (v *Variables) value(ctx context.Context, src volume.Source, pod *v1.Pod, c *v1.Container, e *v1.EnvVar) (string, bool, error) {
	from := e.ValueFrom
	switch {
	case from == nil:
		return v.Expand(e.Value), true, nil
	case from.FieldRef != nil, from.ResourceFieldRef != nil:
		s, err := src.Field(pod, c.Name, from.FieldRef, from.ResourceFieldRef)
		return s, true, err
	case from.SecretKeyRef != nil:
		data, err := src.Secret(ctx, pod.Namespace, from.SecretKeyRef.Name)
		return key(data, err, "secret "+from.SecretKeyRef.Name, from.SecretKeyRef.Key, from.SecretKeyRef.Optional)
	case from.ConfigMapKeyRef != nil:
		data, err := src.ConfigMap(ctx, pod.Namespace, from.ConfigMapKeyRef.Name)
		return key(data, err, "config map "+from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional)
	}
	return "", false, errors.New("unknown source: want fieldRef, resourceFieldRef, secretKeyRef or configMapKeyRef")
}

func key(data map[string][]byte, err error, what, name string, optional *bool) (string, bool, error) {
	if err != nil {
		if errors.Is(err, volume.ErrNotFound) && isTrue(optional) {
			return "", false, nil
		}
		return "", false, fmt.Errorf("%s: %w", what, err)
	}
	value, found := data[name]
	if !found && !isTrue(optional) {
		return "", false, fmt.Errorf("%s has no key %q", what, name)
	}
	return string(value), found, nil
}

func isTrue(b *bool) bool { return b != nil && *b }
