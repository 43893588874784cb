// Package volume lays a pod's volumes down in a folder as a kubelet does: each
// update appears at once, by the change of one symbolic link, so that programs
// which watch their certificates see the same sequence as in a cluster. It reads
// through a Source and knows no client.
package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// ErrNotFound is what a Source returns for an object that does not exist.
var ErrNotFound = errors.New("not found")

// Source reads what volumes are made of.
type Source interface {
	Secret(ctx context.Context, namespace, name string) (map[string][]byte, error)
	ConfigMap(ctx context.Context, namespace, name string) (map[string][]byte, error)
	// Token returns a token of the pod's ServiceAccount and when to ask again.
	Token(ctx context.Context, pod *v1.Pod, audience string, ttl time.Duration) (string, time.Time, error)
	// Field resolves a downward API field.
	Field(pod *v1.Pod, container string, ref *v1.ObjectFieldSelector, resource *v1.ResourceFieldSelector) (string, error)
}

// File is one file of a volume; its path is relative to the volume.
type File struct {
	Data []byte
	Mode os.FileMode
}

// Set is the volumes of one pod under one folder.
type Set struct {
	Dir    string // <Dir>/<volume name>
	Source Source
	// CheckOnly writes nothing and asks for no token, as nothing in the pod could
	// read them; a source that is missing is an error all the same.
	CheckOnly bool
	tokens    map[string]token
}

type token struct {
	value   string
	renewAt time.Time
}

// Path is where a volume lies.
func (s *Set) Path(volume string) string { return filepath.Join(s.Dir, volume) }

// Lay writes all volumes of the pod, or brings them up to date. It returns an
// error that names the volume whose source is missing; a kubelet would try again.
func (s *Set) Lay(ctx context.Context, pod *v1.Pod, now time.Time) error {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if err := s.lay(ctx, pod, v, now); err != nil {
			return fmt.Errorf("volume %q: %w", v.Name, err)
		}
	}
	return nil
}

func (s *Set) lay(ctx context.Context, pod *v1.Pod, v *v1.Volume, now time.Time) error {
	files := map[string]File{}
	var err error
	switch {
	case v.Secret != nil:
		err = s.addSecret(ctx, files, pod.Namespace, v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
	case v.ConfigMap != nil:
		err = s.addConfigMap(ctx, files, pod.Namespace, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	case v.DownwardAPI != nil:
		err = s.addDownward(files, pod, v.DownwardAPI.Items)
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			if err = s.addProjection(ctx, files, pod, v.Name, i, now); err != nil {
				return err
			}
		}
	}
	if err != nil || s.CheckOnly {
		return err
	}
	dir := s.Path(v.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil || len(files) == 0 {
		return err
	}
	return writeAtomic(dir, files)
}

func (s *Set) addProjection(ctx context.Context, files map[string]File, pod *v1.Pod, volume string, i int, now time.Time) error {
	p := &pod.Spec.Volumes[indexOf(pod, volume)].Projected.Sources[i]
	switch {
	case p.Secret != nil:
		return s.addSecret(ctx, files, pod.Namespace, p.Secret.Name, p.Secret.Items, p.Secret.Optional)
	case p.ConfigMap != nil:
		return s.addConfigMap(ctx, files, pod.Namespace, p.ConfigMap.Name, p.ConfigMap.Items, p.ConfigMap.Optional)
	case p.DownwardAPI != nil:
		return s.addDownward(files, pod, p.DownwardAPI.Items)
	case p.ServiceAccountToken != nil && s.CheckOnly:
		return nil
	case p.ServiceAccountToken != nil:
		value, err := s.token(ctx, pod, p.ServiceAccountToken, now)
		if err != nil {
			return err
		}
		return add(files, p.ServiceAccountToken.Path, File{Data: []byte(value), Mode: 0o600})
	}
	return fmt.Errorf("projected source %d: the local node knows secret, configMap, downwardAPI and serviceAccountToken", i)
}

func indexOf(pod *v1.Pod, volume string) int {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Name == volume {
			return i
		}
	}
	return -1
}

func (s *Set) token(ctx context.Context, pod *v1.Pod, p *v1.ServiceAccountTokenProjection, now time.Time) (string, error) {
	ttl := time.Hour
	if p.ExpirationSeconds != nil {
		ttl = time.Duration(*p.ExpirationSeconds) * time.Second
	}
	key := p.Audience + " " + ttl.String()
	if t, ok := s.tokens[key]; ok && now.Before(t.renewAt) {
		return t.value, nil
	}
	value, renewAt, err := s.Source.Token(ctx, pod, p.Audience, ttl)
	if err != nil {
		return "", fmt.Errorf("token of service account %s/%s: %w", pod.Namespace, pod.Spec.ServiceAccountName, err)
	}
	if s.tokens == nil {
		s.tokens = map[string]token{}
	}
	s.tokens[key] = token{value, renewAt}
	return value, nil
}

func (s *Set) addSecret(ctx context.Context, files map[string]File, namespace, name string, items []v1.KeyToPath, optional *bool) error {
	data, err := s.Source.Secret(ctx, namespace, name)
	return addKeys(files, "secret "+namespace+"/"+name, data, err, items, optional)
}

func (s *Set) addConfigMap(ctx context.Context, files map[string]File, namespace, name string, items []v1.KeyToPath, optional *bool) error {
	data, err := s.Source.ConfigMap(ctx, namespace, name)
	return addKeys(files, "config map "+namespace+"/"+name, data, err, items, optional)
}

func (s *Set) addDownward(files map[string]File, pod *v1.Pod, items []v1.DownwardAPIVolumeFile) error {
	for _, item := range items {
		container := ""
		if item.ResourceFieldRef != nil {
			container = item.ResourceFieldRef.ContainerName
		}
		value, err := s.Source.Field(pod, container, item.FieldRef, item.ResourceFieldRef)
		if err != nil {
			return err
		}
		if err := add(files, item.Path, File{Data: []byte(value), Mode: 0o644}); err != nil {
			return err
		}
	}
	return nil
}

func addKeys(files map[string]File, what string, data map[string][]byte, err error, items []v1.KeyToPath, optional *bool) error {
	isOptional := optional != nil && *optional
	if errors.Is(err, ErrNotFound) && isOptional {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if len(items) == 0 {
		for key, value := range data {
			if err := add(files, key, File{Data: value, Mode: 0o644}); err != nil {
				return err
			}
		}
		return nil
	}
	for _, item := range items {
		value, found := data[item.Key]
		if !found && isOptional {
			continue
		}
		if !found {
			return fmt.Errorf("%s: no key %q", what, item.Key)
		}
		if err := add(files, item.Path, File{Data: value, Mode: 0o644}); err != nil {
			return err
		}
	}
	return nil
}

func add(files map[string]File, name string, f File) error {
	clean := path.Clean(name)
	if path.IsAbs(name) || clean == "." || clean == ".." || strings.HasPrefix(clean, "../") {
		return fmt.Errorf("path %q: want a relative path that stays within the volume", name)
	}
	files[clean] = f
	return nil
}
