package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

const (
	fieldManager    = userAgent
	accountTimeout  = 30 * time.Second // until a new namespace has its ServiceAccount
	accountPolling  = 50 * time.Millisecond
	defaultAccount  = "default"
	defaultPageSize = 4096 // bytes, of the YAML reader
)

// Client works with manifests of any kind: it asks the API server how a kind is
// called in URLs. Errors are those of apimachinery's api/errors.
type Client struct {
	rest *rest.RESTClient

	mu        sync.Mutex
	resources map[schema.GroupVersion]map[string]metav1.APIResource // by kind
}

// NewClient returns a client with the rights of config's user.
func NewClient(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Client{rest: client, resources: map[schema.GroupVersion]map[string]metav1.APIResource{}}, nil
}

// Client returns a client for id.
func (c *Cluster) Client(id Identity) (*Client, error) {
	config, err := c.RESTConfig(id)
	if err != nil {
		return nil, err
	}
	return NewClient(config)
}

// REST gives access to any path of the API.
func (c *Client) REST() *rest.RESTClient { return c.rest }

// Apply creates or changes every object of a YAML stream by server-side apply,
// in order. Objects without a namespace go to "default" if their kind has
// namespaces. After a Namespace it waits until pods can be created there.
func (c *Client) Apply(ctx context.Context, manifests []byte) error {
	return c.each(ctx, manifests, func(object *unstructured.Unstructured, location string) error {
		body, err := json.Marshal(object)
		if err != nil {
			return err
		}
		err = c.rest.Patch(types.ApplyPatchType).AbsPath(location).
			Param("fieldManager", fieldManager).Param("force", "true").
			Body(body).Do(ctx).Error()
		if err != nil {
			return err
		}
		if object.GetAPIVersion() == "v1" && object.GetKind() == "Namespace" {
			return c.awaitAccount(ctx, object.GetName())
		}
		return nil
	})
}

// Delete deletes every object of a YAML stream; those that are gone already are
// no error. It does not wait for their end.
func (c *Client) Delete(ctx context.Context, manifests []byte) error {
	return c.each(ctx, manifests, func(_ *unstructured.Unstructured, location string) error {
		err := c.rest.Delete().AbsPath(location).Do(ctx).Error()
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// Get reads an API path, such as /api/v1/namespaces/default/pods/web, into a
// Kubernetes type or anything else that encoding/json fills.
func (c *Client) Get(ctx context.Context, location string, into any) error {
	raw, err := c.rest.Get().AbsPath(location).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("GET %s: %w", location, err)
	}
	return json.Unmarshal(raw, into)
}

// Post creates a resource or asks a question such as a TokenRequest; into gets
// the answer unless it is nil.
func (c *Client) Post(ctx context.Context, location string, body, into any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	raw, err := c.rest.Post().AbsPath(location).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(content).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("POST %s: %w", location, err)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

// Patch changes a resource by a patch of the given type.
func (c *Client) Patch(ctx context.Context, location string, kind types.PatchType, patch string) error {
	if err := c.rest.Patch(kind).AbsPath(location).Body([]byte(patch)).Do(ctx).Error(); err != nil {
		return fmt.Errorf("PATCH %s: %w", location, err)
	}
	return nil
}

// each calls do with every object and its path. It goes on after errors, which
// name the object, and returns all of them.
func (c *Client) each(ctx context.Context, manifests []byte, do func(object *unstructured.Unstructured, location string) error) error {
	objects, err := parse(manifests)
	if err != nil {
		return err
	}
	var faults []error
	for _, object := range objects {
		location, err := c.locate(ctx, object)
		if err == nil {
			err = do(object, location)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s %s: %w", object.GetKind(), path.Join(object.GetNamespace(), object.GetName()), err))
		}
	}
	return errors.Join(faults...)
}

// parse splits a YAML stream into objects.
func parse(manifests []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReaderSize(bytes.NewReader(manifests), defaultPageSize))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		if len(object.Object) == 0 { // comments only
			continue
		}
		if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
			return nil, fmt.Errorf("document %d: want apiVersion, kind and metadata.name", number)
		}
		objects = append(objects, object)
	}
}

// locate returns the path of an object, and sets its namespace if it has none.
func (c *Client) locate(ctx context.Context, object *unstructured.Unstructured) (string, error) {
	gv, err := schema.ParseGroupVersion(object.GetAPIVersion())
	if err != nil {
		return "", err
	}
	resource, err := c.resource(ctx, gv, object.GetKind())
	if err != nil {
		return "", err
	}
	if !resource.Namespaced {
		return path.Join(groupPath(gv), resource.Name, object.GetName()), nil
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	return path.Join(groupPath(gv), "namespaces", object.GetNamespace(), resource.Name, object.GetName()), nil
}

// resource looks a kind up, and asks the API server once more when it does not
// know it: a definition may have just been made.
func (c *Client) resource(ctx context.Context, gv schema.GroupVersion, kind string) (metav1.APIResource, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if resource, known := c.resources[gv][kind]; known {
		return resource, nil
	}
	var list metav1.APIResourceList
	if err := c.Get(ctx, groupPath(gv), &list); err != nil {
		return metav1.APIResource{}, err
	}
	kinds := map[string]metav1.APIResource{}
	for _, resource := range list.APIResources {
		if path.Base(resource.Name) == resource.Name { // a subresource has a slash
			kinds[resource.Kind] = resource
		}
	}
	c.resources[gv] = kinds
	resource, known := kinds[kind]
	if !known {
		return resource, fmt.Errorf("the API server has no kind %s in %s", kind, gv)
	}
	return resource, nil
}

func groupPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return path.Join("/api", gv.Version)
	}
	return path.Join("/apis", gv.Group, gv.Version)
}

// awaitAccount waits until a namespace has its default ServiceAccount, without
// which admission refuses its pods.
func (c *Client) awaitAccount(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, accountTimeout, fmt.Errorf("no ServiceAccount %s after %s: does the controller manager run?", defaultAccount, accountTimeout))
	defer cancel()
	location := path.Join("/api/v1/namespaces", namespace, "serviceaccounts", defaultAccount)
	tick := time.NewTicker(accountPolling)
	defer tick.Stop()
	for {
		err := c.rest.Get().AbsPath(location).Do(ctx).Error()
		if err == nil || !apierrors.IsNotFound(err) && !temporary(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// temporary says that the API server did not answer, or asks to come again.
func temporary(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError || apierrors.IsTooManyRequests(err)
}
