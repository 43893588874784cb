package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Client calls the control API of a running agent.
type Client struct {
	base string
	http *http.Client
}

// NewClient returns a client for the control API at address, "127.0.0.1:4321".
func NewClient(address string) *Client {
	return &Client{base: "http://" + address + "/v1", http: &http.Client{}}
}

// Pods lists the pods that run on the nodes.
func (c *Client) Pods(ctx context.Context) ([]PodInfo, error) {
	var all []PodInfo
	err := c.do(ctx, http.MethodGet, "/pods", nil, &all)
	return all, err
}

// Nodes lists the nodes.
func (c *Client) Nodes(ctx context.Context) ([]NodeInfo, error) {
	var all []NodeInfo
	err := c.do(ctx, http.MethodGet, "/nodes", nil, &all)
	return all, err
}

// Crash ends a container with an exit code.
func (c *Client) Crash(ctx context.Context, namespace, name string, how Crash) error {
	return c.pod(ctx, namespace, name, "crash", how)
}

// OOMKill ends a container with exit code 137 and the reason OOMKilled.
func (c *Client) OOMKill(ctx context.Context, namespace, name, container string) error {
	return c.pod(ctx, namespace, name, "oom", Crash{Container: container})
}

// Evict puts a pod out; its object stays, Failed.
func (c *Client) Evict(ctx context.Context, namespace, name string, how Evict) error {
	return c.pod(ctx, namespace, name, "evict", how)
}

// SetReady overrules a pod's readiness; nil gives it back to its probes.
func (c *Client) SetReady(ctx context.Context, namespace, name string, ready *bool) error {
	return c.pod(ctx, namespace, name, "ready", Ready{ready})
}

// SetHealth makes /healthz of a built-in server answer with a status; 0 undoes it.
func (c *Client) SetHealth(ctx context.Context, namespace, name string, status int) error {
	return c.pod(ctx, namespace, name, "health", Health{status})
}

// NewSandbox starts a pod's containers anew, with another address.
func (c *Client) NewSandbox(ctx context.Context, namespace, name string) error {
	return c.pod(ctx, namespace, name, "sandbox", nil)
}

// Partition cuts a node off from the API server; its pods go on.
func (c *Client) Partition(ctx context.Context, node string) error {
	return c.node(ctx, node, "partition", nil)
}

// Lose cuts a node off and kills its pods.
func (c *Client) Lose(ctx context.Context, node string) error {
	return c.node(ctx, node, "lose", nil)
}

// Heal brings a node back.
func (c *Client) Heal(ctx context.Context, node string) error {
	return c.node(ctx, node, "heal", nil)
}

// PauseWrites holds the status writes of a node's pods back, or lets them go.
func (c *Client) PauseWrites(ctx context.Context, node string, paused bool) error {
	return c.node(ctx, node, "writes", Writes{paused})
}

// ChooseAddress chooses the address of the next pod that fits.
func (c *Client) ChooseAddress(ctx context.Context, a Address) error {
	return c.do(ctx, http.MethodPost, "/addresses", a, nil)
}

func (c *Client) pod(ctx context.Context, namespace, name, verb string, body any) error {
	return c.do(ctx, http.MethodPost, "/pods/"+url.PathEscape(namespace)+"/"+url.PathEscape(name)+"/"+verb, body, nil)
}

func (c *Client) node(ctx context.Context, name, verb string, body any) error {
	return c.do(ctx, http.MethodPost, "/nodes/"+url.PathEscape(name)+"/"+verb, body, nil)
}

func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		var refused Error
		_ = json.NewDecoder(resp.Body).Decode(&refused) // the status says enough
		return fmt.Errorf("node agent: %s %s: %s: %s", method, path, resp.Status, refused.Error)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}
