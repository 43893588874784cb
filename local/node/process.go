package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/elbridge/elbridge/local/node/internal/container"
	"github.com/elbridge/elbridge/local/node/internal/environ"
	"github.com/elbridge/elbridge/local/vpc"
)

// Variables that every process gets beside what its pod declares.
const (
	EnvListen     = "ELBRIDGE_LOCAL_LISTEN"    // loopback address to listen on; also LISTEN_HOST
	EnvPublished  = "ELBRIDGE_LOCAL_PUBLISHED" // address the pod is known by
	EnvMounts     = "ELBRIDGE_LOCAL_MOUNTS"    // JSON object from mount path to folder
	envListenHost = "LISTEN_HOST"
	envPodIP      = "POD_IP"
)

// image finds the binary behind an image name, with its tag or without.
func (a *agent) image(name string) (Image, bool) {
	if i, ok := a.cfg.Images[name]; ok {
		return i, true
	}
	name, _, _ = strings.Cut(name, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	i, ok := a.cfg.Images[name]
	return i, ok
}

// hasProcess says whether any container of the pod runs as a process.
func (a *agent) hasProcess(pod *v1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c v1.Container) bool {
		_, ok := a.image(c.Image)
		return ok
	})
}

// startProcess runs a container whose image is a local binary. The binary stands
// for the image's entry point and for the first word of a command.
func (w *worker) startProcess(ctx context.Context, pod *v1.Pod, c *v1.Container, image Image) (container.Running, string, error) {
	var cmd container.Command
	err := w.host.online(ctx, func(ctx context.Context) (err error) {
		cmd, err = w.command(ctx, c, image)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	p, err := container.Start(w.host.agent.starter, cmd, w.host.agent.now)
	if err != nil {
		return nil, "", err
	}
	return p, cmd.Log, nil
}

func (w *worker) command(ctx context.Context, c *v1.Container, image Image) (container.Command, error) {
	pod := w.current()
	rewrite, mounts := w.rewrites(pod, c)
	vars, err := w.variables(ctx, pod, c, image, mounts)
	if err != nil {
		return container.Command{}, err
	}
	declared := map[string]bool{}
	for _, e := range c.Env {
		declared[e.Name] = true
	}
	cmd := container.Command{
		Path: image.Path,
		Env: vars.List(func(name, value string) string {
			if declared[name] {
				return rewrite.Apply(value)
			}
			return value
		}),
		Dir: image.Dir,
		Log: filepath.Join(w.host.agent.cfg.StateDir, "logs", fmt.Sprintf("%s_%s_%s.log", w.namespace, w.name, c.Name)),
	}
	args := c.Args
	if len(c.Command) > 1 {
		args = slices.Concat(c.Command[1:], args)
	}
	for _, arg := range args {
		cmd.Args = append(cmd.Args, rewrite.Apply(vars.Expand(arg)))
	}
	if cmd.Dir == "" {
		cmd.Dir = filepath.Join(w.dir, "work-"+c.Name)
	}
	for _, dir := range []string{w.dir, cmd.Dir, filepath.Dir(cmd.Log)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return cmd, err
		}
	}
	return cmd, nil
}

// rewrites tells where the container's mounts and addresses really are.
func (w *worker) rewrites(pod *v1.Pod, c *v1.Container) (*environ.Rewrite, map[string]string) {
	r, mounts := &environ.Rewrite{}, map[string]string{}
	for _, m := range c.VolumeMounts {
		dir := filepath.Join(w.volumes.Path(m.Name), m.SubPath)
		r.Path(m.MountPath, dir)
		mounts[m.MountPath] = dir
	}
	for _, a := range published(pod) {
		if real, err := vpc.Loopback(a); err == nil {
			r.Address(a.String(), real.String())
		}
	}
	return r, mounts
}

// variables builds the whole environment: nothing of the agent's own is in it.
func (w *worker) variables(ctx context.Context, pod *v1.Pod, c *v1.Container, image Image, mounts map[string]string) (*environ.Variables, error) {
	v := &environ.Variables{}
	v.Set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	v.Set("HOME", w.dir)
	v.Set("HOSTNAME", pod.Name)
	v.Set("KUBERNETES_SERVICE_HOST", w.host.kube.host)
	v.Set("KUBERNETES_SERVICE_PORT", w.host.kube.port)
	for _, name := range slices.Sorted(maps.Keys(image.Env)) {
		v.Set(name, image.Env[name])
	}
	if all := published(pod); len(all) > 0 {
		real, err := vpc.Loopback(all[0])
		if err != nil {
			return nil, err
		}
		v.Set(envPodIP, all[0].String())
		v.Set(EnvPublished, all[0].String())
		v.Set(EnvListen, real.String())
		v.Set(envListenHost, real.String())
	}
	text, err := json.Marshal(mounts)
	if err != nil {
		return nil, err
	}
	v.Set(EnvMounts, string(text))
	return v, v.Build(ctx, w.volumes.Source, pod, c)
}
