package proxy_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elbridge/elbridge/local/node/internal/proxy"
)

// services makes Services from "name=clusterIP:port/portName".
func services(t *testing.T, text string) []*v1.Service {
	t.Helper()
	var all []*v1.Service
	for _, word := range strings.Fields(text) {
		name, rest, _ := strings.Cut(word, "=")
		address, portName, _ := strings.Cut(rest, "/")
		s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		if ap, err := netip.ParseAddrPort(address); err == nil {
			s.Spec.ClusterIP = ap.Addr().String()
			s.Spec.Ports = []v1.ServicePort{{Name: portName, Port: int32(ap.Port())}}
		} else {
			s.Spec.ClusterIP = address
			s.Spec.Ports = []v1.ServicePort{{Name: portName, Port: 8080}}
		}
		all = append(all, s)
	}
	return all
}

// endpoints makes a slice for each "service/portName:port=addresses": an address
// may end in ! (not ready), ~ (terminating, serving) or - (terminating, not serving).
func endpoints(t *testing.T, text string) []*discoveryv1.EndpointSlice {
	t.Helper()
	var all []*discoveryv1.EndpointSlice
	for _, word := range strings.Fields(text) {
		head, addresses, _ := strings.Cut(word, "=")
		service, rest, _ := strings.Cut(head, "/")
		var port int32
		portName, number, _ := strings.Cut(rest, ":")
		if _, err := fmt.Sscan(number, &port); err != nil {
			t.Fatal(err)
		}
		s := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &portName, Port: &port}},
		}
		for _, a := range strings.Split(addresses, ",") {
			ip := strings.TrimRight(a, "!~-")
			ready, serving, terminating := ip == a, ip == a || strings.HasSuffix(a, "~"), strings.HasSuffix(a, "~") || strings.HasSuffix(a, "-")
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
				Addresses:  []string{ip},
				Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
			})
			if strings.Contains(ip, "::") {
				s.AddressType = discoveryv1.AddressTypeIPv6
			}
		}
		all = append(all, s)
	}
	return all
}

func text(table proxy.Table) string {
	var lines []string
	for frontend, backends := range table {
		var all []string
		for _, b := range backends {
			all = append(all, b.String())
		}
		lines = append(lines, frontend.String()+">"+strings.Join(all, ","))
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

func TestNewTable(t *testing.T) {
	tests := map[string]struct{ services, endpoints, want string }{
		"ready ones":                  {"web=127.96.0.5:8080/http", "web/http:80=10.64.1.7,10.64.1.4", "127.96.0.5:8080>10.64.1.4:80,10.64.1.7:80"},
		"several slices, no doubles":  {"web=127.96.0.5:8080/", "web/:80=10.64.1.7 web/:80=10.64.1.7,10.64.1.8", "127.96.0.5:8080>10.64.1.7:80,10.64.1.8:80"},
		"not ready":                   {"web=127.96.0.5:8080/", "web/:80=10.64.1.7!,10.64.1.8", "127.96.0.5:8080>10.64.1.8:80"},
		"terminating beside ready":    {"web=127.96.0.5:8080/", "web/:80=10.64.1.7~,10.64.1.8", "127.96.0.5:8080>10.64.1.8:80"},
		"only terminating":            {"web=127.96.0.5:8080/", "web/:80=10.64.1.7~,10.64.1.8-,10.64.1.9!", "127.96.0.5:8080>10.64.1.7:80"},
		"nobody: refused":             {"web=127.96.0.5:8080/", "web/:80=10.64.1.7!", ""},
		"another port name":           {"web=127.96.0.5:8080/http", "web/admin:81=10.64.1.7", ""},
		"another service":             {"web=127.96.0.5:8080/", "api/:80=10.64.1.7", ""},
		"headless":                    {"web=None/", "web/:80=10.64.1.7", ""},
		"port below 1024":             {"web=127.96.0.1:443/", "web/:80=10.64.1.7", ""},
		"cluster IP is not loopback":  {"web=10.96.0.5:8080/", "web/:80=10.64.1.7", ""},
		"second family is left out":   {"web=127.96.0.5:8080/", "web/:80=fd00::107", ""},
		"two services, two frontends": {"a=127.96.0.5:8080/ b=127.96.0.6:8443/", "a/:1=10.64.1.1 b/:2=10.64.1.2", "127.96.0.5:8080>10.64.1.1:1 127.96.0.6:8443>10.64.1.2:2"},
		"no services, no endpoints":   {},
		"an address that is none":     {"web=127.96.0.5:8080/", "web/:80=nonsense,10.64.1.7", "127.96.0.5:8080>10.64.1.7:80"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := text(proxy.NewTable(services(t, tt.services), endpoints(t, tt.endpoints))); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
