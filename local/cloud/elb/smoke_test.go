package elb_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/elbridge/elbridge/local/cloud/elb"
)

func get(t *testing.T, url string) (int, string, http.Header) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

func TestALifeOfATarget(t *testing.T) {
	s := start(t, elb.Config{})
	g := s.group(t, "web")
	lb, host := s.balancer(t, "front", types.LoadBalancerTypeEnumApplication)
	s.listen(t, lb, types.ProtocolEnumHttp, 8080, g)
	pod(t, "10.64.210.1:8080", nil)
	s.register(t, g, at("10.64.210.1", 0))
	s.awaitStates(t, g, "10.64.210.1:8080=healthy")
	if status, body, _ := get(t, "http://"+host+":8080/"); status != 200 || body != "10.64.210.1:8080" {
		t.Errorf("through the load balancer: %d %q", status, body)
	}
	s.deregister(t, g, at("10.64.210.1", 0))
	s.awaitStates(t, g, "10.64.210.1:8080=draining/Target.DeregistrationInProgress")
	if status, _, h := get(t, "http://"+host+":8080/"); status != 503 || h.Get("Server") != "awselb/2.0" {
		t.Errorf("with no target: %d by %q, want 503 by awselb/2.0", status, h.Get("Server"))
	}
}
