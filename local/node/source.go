package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elbridge/elbridge/local/node/internal/environ"
	"github.com/elbridge/elbridge/local/node/internal/volume"
)

// rootCAConfigMap is published into every namespace by the controller manager.
const rootCAConfigMap = "kube-root-ca.crt"

// keepFor is how long a node believes what it read, so that many pods which
// start together read once.
const keepFor = time.Second

// source reads what pods are made of; it implements volume.Source.
type source struct {
	kube     *kube
	capacity v1.ResourceList
	now      func() time.Time
	keep     time.Duration

	mu      sync.Mutex
	objects map[string]*kept
}

// kept is one object as it was read last.
type kept struct {
	mu   sync.Mutex // held while reading: others wait for the answer
	data map[string][]byte
	at   time.Time
}

func newSource(k *kube, capacity v1.ResourceList, now func() time.Time, keep time.Duration) *source {
	return &source{kube: k, capacity: capacity, now: now, keep: keep, objects: map[string]*kept{}}
}

// once reads an object unless it was read just now; failures are not kept.
func (s *source) once(key string, read func() (map[string][]byte, error)) (map[string][]byte, error) {
	s.mu.Lock()
	o := s.objects[key]
	if o == nil {
		o = &kept{}
		s.objects[key] = o
	}
	s.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.at.IsZero() && s.now().Sub(o.at) < s.keep {
		return o.data, nil
	}
	data, err := read()
	if err != nil {
		return nil, err
	}
	o.data, o.at = data, s.now()
	return data, nil
}

// Secret implements volume.Source.
func (s *source) Secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	return s.once("secret "+namespace+"/"+name, func() (map[string][]byte, error) {
		var o v1.Secret
		err := s.kube.core.Get().Namespace(namespace).Resource("secrets").Name(name).Do(ctx).Into(&o)
		return o.Data, notFound(err)
	})
}

// ConfigMap implements volume.Source.
func (s *source) ConfigMap(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	return s.once("config map "+namespace+"/"+name, func() (map[string][]byte, error) {
		var o v1.ConfigMap
		err := s.kube.core.Get().Namespace(namespace).Resource("configmaps").Name(name).Do(ctx).Into(&o)
		if apierrors.IsNotFound(err) && name == rootCAConfigMap && len(s.kube.ca) > 0 {
			return map[string][]byte{"ca.crt": s.kube.ca}, nil // its controller may lag behind, or not run
		}
		data := map[string][]byte{}
		for k, v := range o.Data {
			data[k] = []byte(v)
		}
		for k, v := range o.BinaryData {
			data[k] = v
		}
		return data, notFound(err)
	})
}

// Token asks for a token bound to the pod; it is renewed after 80 % of its life.
func (s *source) Token(ctx context.Context, pod *v1.Pod, audience string, ttl time.Duration) (string, time.Time, error) {
	seconds := int64(ttl.Seconds())
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	if audience != "" {
		req.Spec.Audiences = []string{audience}
	}
	var out authenticationv1.TokenRequest
	err := s.kube.core.Post().Namespace(pod.Namespace).Resource("serviceaccounts").Name(pod.Spec.ServiceAccountName).
		SubResource("token").VersionedParams(&metav1.CreateOptions{}, s.kube.params).Body(req).Do(ctx).Into(&out)
	if err != nil {
		return "", time.Time{}, notFound(err)
	}
	return out.Status.Token, out.Status.ExpirationTimestamp.Add(-ttl / 5), nil
}

// Field implements volume.Source.
func (s *source) Field(pod *v1.Pod, container string, ref *v1.ObjectFieldSelector, res *v1.ResourceFieldSelector) (string, error) {
	if ref != nil {
		return environ.Field(pod, ref.FieldPath)
	}
	return environ.Resource(pod, container, res, s.capacity)
}

func notFound(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", volume.ErrNotFound, err)
	}
	return err
}
