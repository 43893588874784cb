package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"
)

// ending is how long a fleet's process has to end.
const ending = 5 * time.Second

// Fleet is a fleet in a process of its own.
type Fleet struct {
	Ready
	cmd  *exec.Cmd
	stop io.Closer // the process ends with its standard input
}

// Start starts a fleet: command is this program with the arguments that lead to
// Command, which get the spec's flags.
func Start(ctx context.Context, spec Spec, command ...string) (*Fleet, error) {
	args := append(command[1:], "--pods", fmt.Sprint(spec.Pods), "--selected", fmt.Sprint(spec.Selected))
	cmd := exec.CommandContext(ctx, command[0], args...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = ending
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	f := &Fleet{cmd: cmd, stop: stdin}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &f.Ready)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the fleet's process did not become ready: %w", err), f.Stop())
	}
	return f, nil
}

// Stop ends the process.
func (f *Fleet) Stop() error {
	_ = f.stop.Close()
	return f.cmd.Wait()
}

// Env is the environment by which SDKs find the fleet's AWS.
func (f *Fleet) Env() []string {
	return []string{"AWS_ENDPOINT_URL=" + f.AWS, "AWS_REGION=" + Region, "AWS_ACCESS_KEY_ID=" + principal.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY=" + principal.SecretAccessKey, "AWS_EC2_METADATA_DISABLED=true"}
}

// QueueURL is SQS's own form.
func (f *Fleet) QueueURL(name string) string { return f.AWS + "/" + Account + "/" + name }

// Kubeconfig writes a kubeconfig for the fleet's API server into dir.
func (f *Fleet) Kubeconfig(dir string) (string, error) {
	type m = map[string]any
	text, err := yaml.Marshal(m{"apiVersion": "v1", "kind": "Config", "current-context": ClusterName,
		"clusters": []m{{"name": ClusterName, "cluster": m{"server": f.API, "certificate-authority-data": f.CA}}},
		"contexts": []m{{"name": ClusterName, "context": m{"cluster": ClusterName, "user": "bench"}}},
		"users":    []m{{"name": "bench", "user": m{"token": "any"}}}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "kubeconfig")
	return path, os.WriteFile(path, text, 0o600)
}

// Counts are what the fleet was asked for so far.
func (f *Fleet) Counts(ctx context.Context) (c Counts, err error) {
	return c, f.ask(ctx, http.MethodGet, "/counts", nil, &c)
}

// Compression switches the API server's compression.
func (f *Fleet) Compression(ctx context.Context, on bool) error {
	return f.ask(ctx, http.MethodPost, "/compression", url.Values{"on": {fmt.Sprint(on)}}, nil)
}

// Changes has so many pods a second change.
func (f *Fleet) Changes(ctx context.Context, perSecond float64) error {
	return f.ask(ctx, http.MethodPost, "/changes", url.Values{"per-second": {fmt.Sprint(perSecond)}}, nil)
}

// TakeOut takes a target out of a group, and says which.
func (f *Fleet) TakeOut(ctx context.Context, group int) (target string, err error) {
	return target, f.ask(ctx, http.MethodPost, "/take-out", url.Values{"group": {fmt.Sprint(group)}}, &target)
}

func (f *Fleet) ask(ctx context.Context, method, path string, form url.Values, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, f.Control+path+"?"+form.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("fleet: %s %s: %s: %s", method, path, res.Status, body)
	case into == nil:
		return nil
	}
	return json.Unmarshal(body, into)
}
