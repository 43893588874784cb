package volume_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/elbridge/elbridge/local/node/internal/volume"
)

// source holds secrets and config maps by name, and counts tokens.
type source struct {
	objects map[string]map[string][]byte
	tokens  int
	renew   time.Time
}

func (s *source) get(name string) (map[string][]byte, error) {
	if data, ok := s.objects[name]; ok {
		return data, nil
	}
	return nil, volume.ErrNotFound
}

func (s *source) Secret(_ context.Context, _, name string) (map[string][]byte, error) {
	return s.get(name)
}

func (s *source) ConfigMap(_ context.Context, _, name string) (map[string][]byte, error) {
	return s.get(name)
}

func (s *source) Token(_ context.Context, _ *v1.Pod, audience string, ttl time.Duration) (string, time.Time, error) {
	s.tokens++
	return fmt.Sprintf("%s %s %d", audience, ttl, s.tokens), s.renew, nil
}

func (s *source) Field(p *v1.Pod, _ string, ref *v1.ObjectFieldSelector, _ *v1.ResourceFieldSelector) (string, error) {
	return p.Name + " " + ref.FieldPath, nil
}

func podWith(v ...v1.Volume) *v1.Pod {
	p := &v1.Pod{Spec: v1.PodSpec{Volumes: v}}
	p.Name, p.Namespace = "web", "ns"
	return p
}

func secretVolume(name string, optional *bool, items ...v1.KeyToPath) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: name, Items: items, Optional: optional}}}
}

// contents lists "path=content" of every file that a program would see.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		root, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		err = filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(p)
			all = append(all, e.Name()+strings.TrimPrefix(p, root)+"="+string(data))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return strings.Join(all, " ")
}

func TestLay(t *testing.T) {
	yes := true
	src := &source{objects: map[string]map[string][]byte{"s": {"a": []byte("1"), "b": []byte("2")}, "m": {"c": []byte("3")}}}
	tests := map[string]struct {
		volume v1.Volume
		want   string // contents, or what the error says
	}{
		"secret":          {secretVolume("s", nil), "a=1 b=2"},
		"items":           {secretVolume("s", nil, v1.KeyToPath{Key: "a", Path: "deep/x"}), "deep/x=1"},
		"missing key":     {secretVolume("s", nil, v1.KeyToPath{Key: "z", Path: "x"}), `no key "z"`},
		"missing secret":  {secretVolume("none", nil), "secret ns/none: not found"},
		"optional secret": {secretVolume("none", &yes), ""},
		"optional key":    {secretVolume("s", &yes, v1.KeyToPath{Key: "z", Path: "x"}), ""},
		"escaping path":   {secretVolume("s", nil, v1.KeyToPath{Key: "a", Path: "../x"}), "stays within the volume"},
		"empty folder":    {v1.Volume{Name: "s", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}, ""},
		"downward API": {v1.Volume{Name: "s", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{
			Items: []v1.DownwardAPIVolumeFile{{Path: "f", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		}}}, "f=web metadata.name"},
		"projected": {v1.Volume{Name: "s", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
			{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", Audience: "aud"}},
			{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "m"}}},
			{Secret: &v1.SecretProjection{LocalObjectReference: v1.LocalObjectReference{Name: "s"}}},
		}}}}, "a=1 b=2 c=3 token=aud 1h0m0s 1"},
		"unknown projection": {v1.Volume{Name: "s", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{}}}}}, "projected source 0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			src.tokens = 0
			set := &volume.Set{Dir: t.TempDir(), Source: src}
			err := set.Lay(t.Context(), podWith(tt.volume), time.Unix(0, 0))
			if err != nil {
				if tt.want == "" || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), `volume "`+tt.volume.Name+`"`) {
					t.Errorf("error %q, want %q", err, tt.want)
				}
				return
			}
			if got := contents(t, set.Path(tt.volume.Name)); got != tt.want {
				t.Errorf("contents %q, want %q", got, tt.want)
			}
		})
	}
}

func TestUpdatesAppearAtOnce(t *testing.T) {
	src := &source{objects: map[string]map[string][]byte{"s": {"crt": []byte("1"), "key": []byte("1"), "old": []byte("x")}}}
	set := &volume.Set{Dir: t.TempDir(), Source: src}
	pod := podWith(secretVolume("s", nil))
	lay := func() string {
		t.Helper()
		if err := set.Lay(t.Context(), pod, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		target, err := os.Readlink(filepath.Join(set.Path("s"), "..data"))
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
	first := lay()
	if lay() != first {
		t.Error("nothing changed but the folder did")
	}
	src.objects["s"] = map[string][]byte{"crt": []byte("2"), "key": []byte("2")}
	if lay() == first {
		t.Error("the change is not there")
	}
	if got := contents(t, set.Path("s")); got != "crt=2 key=2" {
		t.Errorf("contents %q", got)
	}
	if _, err := os.Stat(filepath.Join(set.Path("s"), first)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old folder is left: %v", err)
	}
	delete(src.objects, "s") // a source that goes away leaves what is there
	if err := set.Lay(t.Context(), pod, time.Unix(0, 0)); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("error %v", err)
	}
	if got := contents(t, set.Path("s")); got != "crt=2 key=2" {
		t.Errorf("contents %q", got)
	}
}

func TestP100TokensAreRenewedBeforeTheyExpire(t *testing.T) {
	start := time.Unix(1000, 0)
	src := &source{renew: start.Add(48 * time.Minute)}
	set := &volume.Set{Dir: t.TempDir(), Source: src}
	pod := podWith(v1.Volume{Name: "t", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
		{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token"}},
	}}}})
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {47 * time.Minute, 1}, {48 * time.Minute, 2}} {
		if err := set.Lay(t.Context(), pod, start.Add(step.after)); err != nil {
			t.Fatal(err)
		}
		if src.tokens != step.want {
			t.Errorf("after %s: %d tokens, want %d", step.after, src.tokens, step.want)
		}
	}
}

func TestCheckOnlyWritesNothing(t *testing.T) {
	src := &source{objects: map[string]map[string][]byte{"s": {"a": []byte("1")}}}
	set := &volume.Set{Dir: filepath.Join(t.TempDir(), "none"), Source: src, CheckOnly: true}
	token := v1.Volume{Name: "t", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
		{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token"}},
	}}}}
	if err := set.Lay(t.Context(), podWith(secretVolume("s", nil), token), time.Unix(0, 0)); err != nil || src.tokens != 0 {
		t.Errorf("%d tokens, %v", src.tokens, err)
	}
	if _, err := os.Stat(set.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
	if err := set.Lay(t.Context(), podWith(secretVolume("missing", nil)), time.Unix(0, 0)); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}
